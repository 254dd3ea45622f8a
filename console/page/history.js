// Who has changed rules, when and why; what a revision had; and back to it.
import { clock, count, h, name, none, plain, scroller, show, table } from "./dom.js";
import { eventList } from "./events.js";
import { diffView } from "./rules.js";
import { get, post } from "./api.js";

export function history(place, { revision }, me) {
  const body = h("div", { class: "row two" }), one = h("div");
  place.append(h("h1", null, "History"), h("p", { class: "sub" }, "Every change of the documents, and what somebody forced, switched or recharged."), one, body);
  if (revision && me.store) open(one, revision, me);
  let known = null;
  return { query: {}, show(s) {
    known = s.pushes ?? known; // etcd may be away
    show(body, h("section", { class: "card" }, h("h2", null, "Pushes"), known?.length ? pushes(known) : none(!me.store ? "This process has no store of documents." : known ? "Nothing was pushed yet." : "They are in etcd, which does not answer.")),
      h("section", { class: "card" }, h("h2", null, "In the instances"), scroller("Events in the instances", s.events.length ? eventList(s.events, 60) : none("Nothing has happened yet."))));
  } };
}

const pushes = (list) => table("pushes", ["revision", "when", "who", "why", "documents"], list.map((p) => h("tr", { "data-key": String(p.revision) },
  h("td", { class: "n" }, h("a", { href: `#/history?revision=${p.revision}` }, String(p.revision))), h("td", null, clock(p.time)), h("td", { class: "name" }, name(p.author || "—", 60)),
  h("td", { class: "wrap" }, name(p.message || "—", 300)), h("td", { class: "n" }, `${p.documents} (+${p.added} ~${p.changed} −${p.removed})`))));

// open shows what going back to a revision would change.
async function open(into, revision, me) {
  const found = await get("revision", { revision }).catch((err) => err);
  if (found instanceof Error) return into.replaceChildren(h("p", { class: "err" }, found.message));
  const done = h("div", { role: "status" }), message = h("input", { name: "message", required: true, value: `rollback to ${revision}`, maxlength: 500 });
  const back = found.changes.length > 0 && me.edit && h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const body = { revision: found.revision, expect: found.present, message: message.value };
    show(done, await post("rollback", body).then((r) => h("p", { class: "ok" }, `Revision ${r.revision} has the documents of ${revision} again.`), (err) => h("p", { class: "err" }, err.message)));
  } }, h("label", null, "Why", message), h("div", { class: "buttons" }, h("button", { class: "go" }, `Roll back to ${plain(revision, 20)}`)), done);
  into.replaceChildren(h("section", { class: "card row" }, h("h2", null, `Revision ${plain(revision, 20)}`),
    found.changes.length ? [h("p", { class: "dim" }, `Going back to it changes ${count(found.changes.length, "document")}:`), diffView(found.changes)] : none("The present documents are those of this revision."), back || ""));
}
