// Documents: read, edited, checked as one types, pushed, and followed until all instances have them.
import { bar, card, count, h, name, none, number, plain, show, tag } from "./dom.js";
import { get, post } from "./api.js";
import { maySwitch, switchCard } from "./switch.js";
import { tryCard } from "./try.js";

export function rules(place, { name: of, line }, me) {
  const sub = h("p", { class: "sub" }), list = h("div"), progress = h("div"), work = h("div", { class: "stack" }), switches = switchCard(me);
  place.append(h("h1", null, of === undefined ? "Rules" : name(of || "new document", 200)), sub,
    h("div", { class: "row two" }, work, h("div", { class: "stack" }, progress, list, switches.element)));
  let kinds = null, latest = null; // kinds are asked for once; again if there was no answer
  const offer = () => switches.show(latest.switches, latest, [{}, ...(kinds ?? [])]);
  const ask = () => {
    kinds = [];
    get("kinds").then((of) => { kinds = Object.keys(of).map((kind) => ({ kind })); offer(); }, () => { kinds = null; });
  };
  const editor = of !== undefined && me.store ? documentEditor(work, of, Number(line) || 1, me) : null;
  if (!editor) work.append(list);
  return { query: {}, end: editor?.end, show(s, strip) {
    latest = strip;
    if (!kinds) ask();
    offer();
    if (s.away) return list.hasChildNodes() || show(sub, document.createTextNode("The documents are in etcd, which does not answer. Rules can be switched off."));
    show(sub, document.createTextNode(!me.store ? "The documents in force in this process." : of === undefined ? `Revision ${s.revision}. Choose a document to read or change it.` : "A draft. Nothing is in force until it is pushed."));
    show(list, card("Documents", s.documents.length ? documentList(s.documents, of, me) : none("There are no documents."), me.edit && h("p", null, h("a", { class: "btn", href: "#/rules?name=" }, "New document"))));
    show(progress, me.store && progressCard(s));
    editor?.seen();
  } };
}

function documentList(documents, of, me) {
  return h("ul", { class: "list" }, documents.map((d) => h("li", { "data-key": d.name },
    h("span", { class: "grow" }, me.store ? h("a", { href: "#/rules?" + new URLSearchParams({ name: d.name }), "aria-current": d.name === of ? "true" : null }, name(d.name, 80)) : name(d.name, 80),
      d.source ? h("div", { class: "dim" }, name(d.source, 80)) : "", (d.rejected ?? []).map((r) => h("p", { class: "err" }, plain(r, 400)))),
    d.rejected ? tag("rejected", "refuse") : "", h("span", { class: "n dim" }, d.revision ? `rev ${d.revision}` : count(d.rules, "rule")))));
}

// progressCard says which instances have the documents.
function progressCard(s) {
  const current = s.progress.filter((p) => p.current).length, all = s.progress.length;
  const late = s.progress.filter((p) => !p.current || p.rejected || p.heldBack);
  return card("In force", all ? h("span", { class: "bar wide" }, h("i", { class: current < all ? "high" : "", percent: (100 * current) / all })) : none("No instance reports."),
    all > 0 && h("p", { class: "n", role: "status", id: "progress" }, `${current} of ${count(all, "instance")} have revision ${s.revision}`),
    s.pushed && h("p", { class: "dim" }, "pushed by ", name(s.pushed.author || "somebody", 60), ": ", name(s.pushed.message || "no message", 200)),
    late.length > 0 && h("ul", { class: "list" }, late.slice(0, 20).map((p) => h("li", null, h("span", { class: "grow" }, name(p.instance, 60)),
      !p.current && tag(p.onCopy ? "on a copy" : `at ${p.revision}`, "wait"), p.rejected > 0 && tag(`${p.rejected} rejected`, "refuse"), p.heldBack && tag("holds a removal back", "wait")))));
}

function documentEditor(into, of, line, me) {
  const parts = { title: h("input", { name: "document", placeholder: "shop/orders.yaml", "aria-label": "name of the document", required: true }), holder: h("div", { class: "editor" }), found: h("div", { role: "status" }), diff: h("div"), done: h("div", { role: "status" }) };
  const state = { base: null, expect: 0, sound: false, timer: 0, ended: false, editor: null, name: of };
  const push = pushForm(parts, state, me), trial = maySwitch(me) ? tryCard(() => ({ name: state.name || parts.title.value || "new.yaml", text: state.editor.text() })) : null;
  into.append(h("section", { class: "card" }, of === "" && h("label", null, "Name", parts.title), parts.holder, parts.found), trial?.element ?? "", push ?? "", parts.diff);
  load(parts, state, line, me).catch((err) => show(parts.found, h("p", { class: "err" }, err.message)));
  const warn = (event) => { if (isChanged(state)) event.preventDefault(); };
  addEventListener("beforeunload", warn);
  return {
    seen() { if (state.unanswered) check(parts, state); },
    end() {
      state.ended = true;
      trial?.end();
      clearTimeout(state.timer);
      removeEventListener("beforeunload", warn);
    },
  };
}

const isChanged = (state) => state.editor && state.editor.text() !== state.base;

async function load(parts, state, line, me) {
  const [{ edit }, document_, kinds] = await Promise.all([import("./editor.js"), get("document", { name: state.name }), get("kinds")]);
  if (state.ended) return;
  [state.base, state.expect] = [document_.text, document_.revision];
  state.editor = edit({ parent: parts.holder, text: document_.text, readOnly: !me.edit, complete: completer(kinds), changed() {
    clearTimeout(state.timer);
    state.sound = false;
    state.update?.();
    state.timer = setTimeout(() => check(parts, state), 200);
  } });
  if (line > 1) state.editor.go(line, 1);
  if (document_.text) check(parts, state);
}

// check has the parser of the instances judge the draft, and shows what it says.
async function check(parts, state) {
  const text = state.editor.text();
  const found = await post("check", { name: state.name || parts.title.value || "new.yaml", text }).catch((err) => ({ failed: err.message }));
  if (state.ended || text !== state.editor.text()) return;
  state.unanswered = Boolean(found.failed);
  if (found.failed) return show(parts.found, h("p", { class: "err" }, found.failed));
  state.sound = !found.problems.length;
  state.editor.mark(found.problems);
  show(parts.found, state.sound ? h("div", { class: "ok" }, text === "" ? "An empty document is removed." : "No mistakes. ", found.changes.length ? h("ul", null, found.changes.slice(0, 20).map((c) => h("li", null, plain(c, 500)))) : "No rule changes.")
    : h("div", null, found.problems.slice(0, 20).map((p) => h("p", { class: "err" }, h("button", { type: "button", "data-line": p.line, "data-column": p.column }, `line ${p.line}, column ${p.column}`), ` ${plain(p.text, 600)}`)),
      found.problems.length > 20 && none(`and ${found.problems.length + (found.tooMany ?? 0) - 20} more`)));
  parts.found.onclick = ({ target }) => target.dataset.line && state.editor.go(Number(target.dataset.line), Number(target.dataset.column));
  show(parts.diff, found.diff.length > 0 && card("What changes", diffView(found.diff)));
  state.update?.();
}

// diffView shows how documents differ, by the line.
export const diffView = (documents) => documents.map((d) => h("div", null, h("b", null, name(d.name, 200)),
  h("div", { class: "diff" }, d.lines.map((l) => h("div", { "data-op": l.op }, plain(l.text, 500) || " "))), d.more > 0 && none(`and ${count(d.more, "line")} more`)));

function pushForm(parts, state, me) {
  if (!me.edit) return null;
  const message = h("input", { name: "message", placeholder: "higher limit for orders", "aria-label": "why", required: true, maxlength: 500 });
  const removals = h("input", { type: "checkbox", name: "confirm" }), button = h("button", { class: "go" }, "Push");
  state.update = () => { button.disabled = !state.sound || !isChanged(state); };
  state.update();
  const body = () => ({ name: state.name || parts.title.value, text: state.editor.text(), expect: state.expect, message: message.value, confirm: removals.checked });
  return h("form", { class: "card", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const sent = body();
    try {
      const { revision, unchanged } = await post("push", sent);
      [state.base, state.expect] = [sent.text, Math.max(revision, state.expect)];
      message.value = "";
      show(parts.done, h("p", { class: "ok" }, unchanged ? "Nothing was to be written." : `Pushed as revision ${revision}: beside this you see which instances have it.`));
      if (!state.name) location.hash = "#/rules?" + new URLSearchParams({ name: sent.name });
      else await check(parts, state);
    } catch (err) {
      show(parts.done, h("p", { class: "err" }, err.message), err.status === 409 && h("p", null, "Your draft is still here. Open the document anew to see what others have written: ", h("a", { href: location.hash, onclick: () => location.reload() }, "open it"), "."));
    }
    state.update();
  } }, h("h2", null, "Push"), h("label", null, "Why", message), h("label", { class: "check" }, removals, "Instances that hold large removals back put this in force, too"), h("div", { class: "buttons" }, button), parts.done);
}

// completer completes the names of kinds at the start of a line, and the fields of the kind below it.
function completer(kinds) {
  const option = (f) => ({ label: f.name.split(".").pop(), apply: `${f.name.split(".").pop()}: `, detail: f.default, info: f.about });
  return (context) => {
    const line = context.state.doc.lineAt(context.pos), before = line.text.slice(0, context.pos - line.from);
    const word = /(^|[\s{,-])([A-Za-z]*)$/.exec(before);
    if (!word || (!word[2] && !context.explicit)) return null;
    const from = context.pos - word[2].length;
    if (/^[A-Za-z]*$/.test(before)) return { from, options: Object.keys(kinds).map((kind) => ({ label: kind, apply: `${kind}:\n  - ` })) };
    if (/:\s*[^{,]*$/.test(before.replace(/.*[{,]/, ""))) return null; // a value
    for (let n = line.number - 1; n > 0; n--) {
      const kind = /^([A-Za-z]+):/.exec(context.state.doc.line(n).text)?.[1];
      if (kind) return Object.hasOwn(kinds, kind) ? { from, options: kinds[kind].map(option) } : null;
    }
    const kind = /^([A-Za-z]+):/.exec(line.text)?.[1];
    return Object.hasOwn(kinds, kind) ? { from, options: kinds[kind].map(option) } : null;
  };
}
