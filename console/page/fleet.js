// What the instances have: limits that all share, their revisions, and lists.
import { bar, card, clock, count, duration, h, name, none, number, plain, show, table, tag } from "./dom.js";
import { get, post } from "./api.js";
import { scopeText, switchOf, switchText } from "./switch.js";

// The limits that all instances share, and what each of them uses.
export function fleet(place) {
  const body = h("div", { class: "stack" });
  place.append(h("h1", null, "Fleet"), h("p", { class: "sub" }, "Limits that all instances share: what they use together, and each of them."), body);
  return { query: {}, show: (s, strip) => show(body, s.limits.length ? s.limits.map((l) => limit(l, strip)) : h("div", { class: "card" }, none("No rule in force has scope: fleet.")), s.members.length > 0 && card("Backend", members(s.members))) };
}

// perSecond reads a window such as 1s, 100ms or 1m0s.
function perSecond(limit, window) {
  const units = { h: 3600, m: 60, s: 1, ms: 1e-3, µs: 1e-6, ns: 1e-9 };
  const length = [...window.matchAll(/([\d.]+)(ms|µs|ns|h|m|s)/g)].reduce((sum, [, n, unit]) => sum + n * units[unit], 0);
  return length ? limit / length : 0;
}

// places shows a limit on calls under way: which instance has how many of its places.
function places(l, note) {
  const p = l.places, ofEach = l.key.startsWith("hotParam/"), cell = (n) => h("td", { class: "num n" }, number(n));
  return h("section", { class: "card", "data-key": l.key }, h("h2", null, name(l.key, 200)),
    h("p", null, ofEach ? h("span", { class: "n" }, `${number(p.inUse)} in use, at most ${number(l.limit)} by each value`) : [bar(p.inUse / (l.limit || 1)), h("span", { class: "n" }, `${number(p.inUse)} of ${number(l.limit)} places in use`)], h("span", { class: "dim" }, ` · ${number(p.held)} held by ${count(p.instances, "instance")} · ${number(p.waiting)} waiting`),
      l.outages > 0 && tag(`${l.outages} without the backend: ${plain(l.onOutage)}`, "refuse")), note,
    table(`places of ${plain(l.key, 100)}`, ["instance", ...["in use", "held", "wanted", "its share", "waiting"].map((text) => h("th", { class: "num" }, text)), ""], l.parts.filter((part) => part.places).map((part) => h("tr", null, h("td", { class: "name" }, name(part.instance, 60)),
      [part.places.inUse, part.places.held, part.places.wanted, part.places.target, part.places.waiting].map(cell), h("td", { class: "wrap" }, part.outage && tag("outage", "refuse"), part.error ? plain(part.error, 200) : "")))));
}

function limit(l, strip) {
  const rate = perSecond(l.limit, l.window), [kind, ...rule] = l.key.split("/"), s = switchOf(strip.switches, kind, rule.join("/"));
  const note = s?.state === "off" && h("p", { class: "note" }, scopeText(s), switchText(s, strip.instances));
  if (l.places) return places(l, note);
  return h("section", { class: "card", "data-key": l.key }, h("h2", null, name(l.key, 200)),
    h("p", null, l.balance ? h("span", { class: "n" }, `${number(l.passed)} /s`) : [bar(rate ? l.passed / rate : 0), h("span", { class: "n" }, `${number(l.passed)} of ${number(rate)} /s`)],
      h("span", { class: "dim" }, ` · asked for ${number(l.demand)}/s · `, l.balance ? h("a", { href: "#/quotas" }, "a balance") : `limit ${number(l.limit)} per ${plain(l.window)}`, ` · ${plain(l.mode)}`),
      l.outages > 0 && tag(`${l.outages} without the backend: ${plain(l.onOutage)}`, "refuse")),
    note,
    table(`parts of ${plain(l.key, 100)}`, ["instance", h("th", { class: "num" }, "passed/s"), h("th", { class: "num" }, "asked for/s"), h("th", { class: "num" }, "granted"), ""], l.parts.map((p) => h("tr", null, h("td", { class: "name" }, name(p.instance, 60)),
      h("td", { class: "num n" }, number(p.passed)), h("td", { class: "num n" }, number(p.demand)), h("td", { class: "num n" }, p.granted === null ? "all" : number(p.granted)),
      h("td", { class: "wrap" }, p.outage && tag("outage", "refuse"), p.error ? plain(p.error, 200) : "")))));
}

function members(list) {
  return table("backends of the instances", ["instance", "backend", h("th", { class: "num" }, "latency"), h("th", { class: "num" }, "outages"), ""], list.map((m) => h("tr", { "data-key": m.instance }, h("td", { class: "name" }, name(m.instance, 60)),
    h("td", null, tag(m.connected ? "answers" : "does not answer", m.connected ? "pass" : "refuse")), h("td", { class: "num n" }, duration(m.latency)), h("td", { class: "num n" }, number(m.outages)), h("td", { class: "wrap" }, m.error ? plain(m.error, 300) : ""))));
}

// Each instance: which documents it has, what of them is not in force, and how its sources are.
export function instances(place, _, me) {
  const body = h("div", { class: "card" }), confirm = h("div");
  place.append(h("h1", null, "Instances"), h("p", { class: "sub" }, "Who has which revision, and what of it is not in force."), confirm, body);
  const removals = me.store && me.role !== "viewer" ? confirmation() : null;
  return { query: {}, show(list) {
    if (removals) show(confirm, list.some((m) => m.heldBack) ? removals : h("div"));
    show(body, list.length ? table("instances", ["instance", "state", h("th", { class: "num" }, "revision"), h("th", { class: "num" }, "rules"), "not in force", "sources"], list.map(row)) : none("No instance reports to etcd."));
  } };
}

const rejected = (m) => (m.rejected ?? []).slice(0, 5).map((r) => h("p", { class: "err" }, h("b", null, name(r.document, 80)), ` ${plain(r.error, 400)}`));

function row(m) {
  return h("tr", { "data-key": m.name }, h("td", { class: "name" }, name(m.name, 60), h("div", { class: "dim n" }, m.address ? name(m.address, 60) : "", m.pid ? ` pid ${m.pid}` : ""), m.started ? h("div", { class: "dim" }, "since ", clock(m.started)) : "", m.version ? h("div", { class: "dim" }, "Penstock ", plain(m.version, 40)) : ""),
    h("td", null, m.error ? tag("does not answer", "refuse") : tag("answers", "pass"), h("div", null, m.copiedAt ? tag("on a copy", "wait") : m.current ? tag("current", "pass") : tag("behind", "wait"), m.otherLists && tag("other lists", "wait"), m.forced > 0 && tag(`${m.forced} forced or off`, "wait")), load(m)),
    h("td", { class: "num n" }, String(m.revision)), h("td", { class: "num n" }, number(m.rules), m.unmatched ? h("div", { class: "dim" }, `${m.unmatched} never matched`) : ""),
    h("td", { class: "wrap" }, rejected(m), m.heldBack ? h("p", { class: "err" }, plain(m.heldBack, 400)) : "", !m.rejected && !m.heldBack ? h("span", { class: "dim" }, "—") : ""),
    h("td", { class: "wrap" }, m.error ? h("span", { class: "bad" }, plain(m.error, 300)) : m.sources.map((s) => h("div", null, s.connected ? tag("connected", "pass") : tag("lost", "refuse"), " ", name(s.name, 60), s.error ? h("div", { class: "dim" }, plain(s.error, 200)) : ""))));
}

// load says how loaded an instance is, and what the signals show that its rules read.
function load(m) {
  return [m.load && h("div", null, tag(`load ${plain(m.load.level, 20)}`, m.load.level === "none" || m.load.level === "light" ? "" : "wait"), h("span", { class: "dim" }, ` ${number(100 * m.load.utilization)} % of the places`)),
    (m.signals ?? []).slice(0, 5).map((s) => h("div", { class: "dim" }, `${plain(s.signal, 30)} `, s.error ? plain(s.error, 100) : number(s.value ?? 0)))];
}

// confirmation has the instances put in force what they hold back.
function confirmation() {
  const done = h("div", { role: "status" });
  return h("form", { class: "card row", "data-key": "confirm", onsubmit: async (event) => {
    event.preventDefault();
    show(done, await post("confirm", {}).then((r) => h("p", { class: "ok" }, `Confirmed at revision ${r.revision}.`), (err) => h("p", { class: "err" }, err.message)));
  } }, h("h2", null, "Held back"), h("p", { class: "none" }, "Instances hold back a change that removes many of their rules, or entries of a list, at once."), h("div", { class: "buttons" }, h("button", null, "Put it in force")), done);
}

// The lists that rules name: which version each instance goes by, and whether something is on one.
export function lists(place) {
  const body = h("div", { class: "card" }), answer = h("div", { role: "status" });
  const list = h("input", { name: "list", required: true, list: "names" }), value = h("input", { name: "value", required: true, placeholder: "192.0.2.7", autocomplete: "off" }), names = h("datalist", { id: "names" });
  place.append(h("h1", null, "Lists"), h("p", { class: "sub" }, "Addresses and texts that rules look up."),
    h("form", { class: "card row", onsubmit: async (event) => {
      event.preventDefault();
      const asked = { list: list.value, value: value.value };
      show(answer, await get("lookup", asked).then(({ on }) => h("p", { class: "ok" }, h("b", null, name(asked.value, 80)), on ? " is on " : " is not on ", h("b", null, name(asked.list, 80)), "."), (err) => h("p", { class: "err" }, err.message)));
    } }, h("h2", null, "Is it on a list?"), h("div", { class: "fields" }, h("label", null, "List", list, names), h("label", null, "Address or text", value), h("button", null, "Look up")), answer), body);
  return { query: {}, show(all) {
    show(names, all.map((l) => h("option", { value: l.name })));
    if (all.length === 1 && !list.value) list.value = all[0].name;
    show(body, all.length ? table("lists", ["list", h("th", { class: "num" }, "entries"), "digest", "in force since", "instances", ""], all.flatMap(rows)) : none("No rule names a list, and none is there."));
  } };
}

const rows = (l) => (l.versions.length ? l.versions.map((v) => h("tr", null, h("td", { class: "name" }, name(l.name, 80), v.source ? h("div", { class: "dim" }, name(v.source, 60)) : ""),
  h("td", { class: "num n" }, number(v.entries)), h("td", { class: "n" }, plain(v.digest.slice(0, 12))), h("td", null, v.since ? clock(v.since) : "—"), h("td", null, v.instances.length > 3 ? count(v.instances.length, "instance") : v.instances.map((i) => h("div", null, name(i, 40)))),
  h("td", { class: "wrap" }, !v.inForce && tag("not in force", "wait"), v.copiedAt && tag("from a copy", "wait"), v.heldBack && h("p", { class: "err" }, plain(v.heldBack, 300)), v.error && h("p", { class: "err" }, plain(v.error, 300)))))
  : [h("tr", null, h("td", { class: "name" }, name(l.name, 80)), h("td", { colspan: 5 }, tag(`missing on ${count(l.missing, "instance")}`, "refuse")))]);
