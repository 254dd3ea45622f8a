// Each instance: which documents it has, what of them is not in force, and how its sources are.
import { clock, count, h, name, none, number, plain, show, table, tag } from "./dom.js";
import { post } from "./api.js";

export function instances(place, _, me) {
  const body = h("div", { class: "card" }), confirm = h("div");
  place.append(h("h1", null, "Instances"), h("p", { class: "sub" }, "Who has which revision, and what of it is not in force."), confirm, body);
  const removals = me.store && me.role !== "viewer" ? confirmation() : null;
  return { query: {}, show(list) {
    if (removals) show(confirm, list.some((m) => m.heldBack) ? removals : h("div"));
    show(body, list.length ? table(["instance", "state", h("th", { class: "num" }, "revision"), h("th", { class: "num" }, "rules"), "not in force", "sources"], list.map(row)) : none("No instance reports to etcd."));
  } };
}

const rejected = (m) => (m.rejected ?? []).slice(0, 5).map((r) => h("p", { class: "err" }, h("b", null, name(r.document, 80)), ` ${plain(r.error, 400)}`));

function row(m) {
  return h("tr", { "data-key": m.name }, h("td", { class: "name" }, name(m.name, 60), h("div", { class: "dim n" }, m.address ? name(m.address, 60) : "", m.pid ? ` pid ${m.pid}` : ""), m.started ? h("div", { class: "dim" }, "since ", clock(m.started)) : ""),
    h("td", null, m.error ? tag("does not answer", "refuse") : tag("answers", "pass"), h("div", null, m.copiedAt ? tag("on a copy", "wait") : m.current ? tag("current", "pass") : tag("behind", "wait"))),
    h("td", { class: "num n" }, String(m.revision)), h("td", { class: "num n" }, number(m.rules), m.unmatched ? h("div", { class: "dim" }, `${m.unmatched} never matched`) : ""),
    h("td", { class: "wrap" }, rejected(m), m.heldBack ? h("p", { class: "err" }, plain(m.heldBack, 400)) : "", !m.rejected && !m.heldBack ? h("span", { class: "dim" }, "—") : ""),
    h("td", { class: "wrap" }, m.error ? h("span", { class: "bad" }, plain(m.error, 300)) : m.sources.map((s) => h("div", null, s.connected ? tag("connected", "pass") : tag("lost", "refuse"), " ", name(s.name, 60), s.error ? h("div", { class: "dim" }, plain(s.error, 200)) : ""))));
}

// confirmation has the instances put in force what they hold back.
function confirmation() {
  const done = h("div", { role: "status" });
  return h("form", { class: "card row", "data-key": "confirm", onsubmit: async (event) => {
    event.preventDefault();
    show(done, await post("confirm", {}).then((r) => h("p", { class: "ok" }, `Confirmed at revision ${r.revision}.`), (err) => h("p", { class: "err" }, err.message)));
  } }, h("h2", null, "Held back"), h("p", { class: "none" }, "Instances hold back a change that removes many of their rules, or entries of a list, at once."), h("div", { class: "buttons" }, h("button", null, "Put it in force")), done);
}
