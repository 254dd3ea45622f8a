// The limits that all instances share, and what each of them uses.
import { scopeText, switchOf, switchText } from "./switch.js";
import { bar, card, duration, h, name, none, number, plain, show, table, tag } from "./dom.js";

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

function limit(l, strip) {
  const rate = perSecond(l.limit, l.window), [kind, ...rule] = l.key.split("/"), s = switchOf(strip.switches, kind, rule.join("/"));
  return h("section", { class: "card", "data-key": l.key }, h("h2", null, name(l.key, 200)),
    h("p", null, bar(l.passed / rate), h("span", { class: "n" }, `${number(l.passed)} of ${number(rate)} /s`), h("span", { class: "dim" }, ` asked for ${number(l.demand)}/s · limit ${number(l.limit)} per ${plain(l.window)} · ${plain(l.mode)}`),
      l.outages > 0 && tag(`${l.outages} without the backend: ${plain(l.onOutage)}`, "refuse")),
    s?.state === "off" && h("p", { class: "note" }, scopeText(s), switchText(s, strip.instances)),
    table(["instance", h("th", { class: "num" }, "passed/s"), h("th", { class: "num" }, "asked for/s"), h("th", { class: "num" }, "granted"), ""], l.parts.map((p) => h("tr", null, h("td", { class: "name" }, name(p.instance, 60)),
      h("td", { class: "num n" }, number(p.passed)), h("td", { class: "num n" }, number(p.demand)), h("td", { class: "num n" }, p.granted === null ? "all" : number(p.granted)),
      h("td", { class: "wrap" }, p.outage && tag("outage", "refuse"), p.error ? plain(p.error, 200) : "")))));
}

function members(list) {
  return table(["instance", "backend", h("th", { class: "num" }, "latency"), h("th", { class: "num" }, "outages"), ""], list.map((m) => h("tr", { "data-key": m.instance }, h("td", { class: "name" }, name(m.instance, 60)),
    h("td", null, tag(m.connected ? "answers" : "does not answer", m.connected ? "pass" : "refuse")), h("td", { class: "num n" }, duration(m.latency)), h("td", { class: "num n" }, number(m.outages)), h("td", { class: "wrap" }, m.error ? plain(m.error, 300) : ""))));
}
