// A draft tried on the calls of the last minutes: how many of whom would have been refused, by which rule.
import { card, count, duration, h, name, none, number, plain, show, table, tag } from "./dom.js";
import { post } from "./api.js";

// tryCard tries what draft returns, one draft at a time, and gives up when the page is left.
export function tryCard(draft) {
  const found = h("div", { role: "status" }), button = h("button", { type: "button", onclick: start }, "Try on real calls");
  let running = null;
  async function start() {
    if (running) return running.abort();
    running = new AbortController();
    show(button, document.createTextNode("Stop"));
    show(found, none("The latest calls are recorded and sent through both …"));
    const answer = await post("try", draft(), running.signal).then(report, (err) => [err.name === "AbortError" ? none("Stopped.") : h("p", { class: "err" }, err.message)]);
    running = null;
    show(button, document.createTextNode("Try on real calls"));
    found.replaceChildren(...answer.flat(Infinity).filter(Boolean));
  }
  return { element: card("Try", h("p", { class: "dim" }, "The calls of the last minutes under this draft, beside the documents in etcd and what happened."), h("div", { class: "buttons" }, button), found), end: () => running?.abort() };
}

const refused = (c) => c.refused + c.gaveUp;
const cell = (n, bad) => h("td", { class: `num n ${bad && n ? "bad" : ""}` }, number(n));

function report(r) {
  const missing = r.failed.slice(0, 20).map((i) => h("p", { class: "err" }, h("b", null, name(i.name, 60)), ` is missing: ${plain(i.error, 300)}`));
  if (!r.total.calls) return [none("No call was recorded, or not long enough."), missing];
  const t = r.total;
  return [h("p", { class: t.newlyRefused ? "err" : "ok" }, h("b", null, `${count(t.newlyRefused, "call")} newly refused, ${number(t.newlyPassed)} newly passed`), ` of ${number(t.calls)} of ${count(r.instances.length, "instance")} in ${duration(r.seconds)}.`), missing,
    rows("resource", r.resources), rows("caller", r.origins.filter((o) => o.name)), rows("value", r.values.filter((v) => v.newlyRefused + v.newlyPassed)),
    r.rules.length > 0 && table("refused by rule", ["rule", ...heads()], r.rules.map((o) => h("tr", null, h("td", { class: "name" }, name(`${o.kind} ${o.rule}`, 80)), cell(o.recorded), cell(o.against ?? 0), cell(o.replayed)))),
    r.unjudged.length > 0 && h("p", null, tag("not judged", "wait"), ` ${count(r.unjudged.length, "rule")}, see below`),
    (r.notes ?? []).map((n) => h("p", { class: "dim" }, plain(n, 400)))];
}

const heads = () => ["refused: recorded", "documents", "draft"].map((text) => h("th", { scope: "col", class: "num" }, text));

function rows(what, list) {
  return list.length > 0 && table(`calls by ${what}`, [what, h("th", { class: "num" }, "calls"), ...heads(), h("th", { class: "num" }, "newly refused"), h("th", { class: "num" }, "newly passed")],
    list.map((o) => h("tr", null, h("td", { class: "name" }, name(o.name, 80)), cell(o.calls), cell(refused(o.recorded)), cell(o.against ? refused(o.against) : 0), cell(refused(o.replayed)), cell(o.newlyRefused, true), cell(o.newlyPassed))));
}
