// One resource: its minute, its rules and how much of each is used, and why a call would be refused.
import { bar, card, clock, count, duration, h, name, none, number, plain, scroller, show, tag } from "./dom.js";
import { lane, legend, lines, seconds, stacked, widthOf } from "./charts.js";
import { eventList, label, toneOf, toneOfEvent } from "./events.js";
import { absent } from "./overview.js";
import { get } from "./api.js";
import { maySwitch, offText, switchCard } from "./switch.js";

export function resource(place, { name: of = "" }, me) {
  const parts = { missing: h("div"), chart: h("div", { class: "card chart" }), lanes: h("div", { class: "card chart" }), times: h("div", { class: "card chart" }), flight: h("div", { class: "card chart" }), side: h("div", { class: "stack" }), sub: h("p", { class: "sub" }) };
  const why = explainer(of), limits = new Map(), switches = switchCard(me);
  parts.side.addEventListener("click", ({ target }) => target.dataset.off && switches.choose(target.dataset.off));
  place.append(h("h1", null, name(of, 400)), parts.sub, parts.missing,
    h("div", { class: "row two" }, h("div", { class: "stack" }, parts.chart, why.element, switches.element, parts.lanes, parts.times, parts.flight), parts.side));
  return { query: { name: of }, show(s, strip) {
    why.keys(s.rules);
    draw(parts, s, limitHistory(limits, s), (r) => ruleItem(r, of, strip, me));
    const kinds = [...new Set(s.rules.map((r) => r.kind))].map((kind) => ({ kind }));
    const concerns = (w) => (w.kind ? s.rules.some((r) => r.kind === w.kind && (!w.rule || r.rule === w.rule)) : !w.resource || w.resource === of);
    switches.show(strip.switches.filter(concerns), strip, [...s.rules, { resource: of }, ...kinds, {}]);
  } };
}

// limitHistory keeps the effective limit of each second that was seen: rules that warm up or follow a
// signal change theirs. It is the lowest of the rules that are for all calls.
function limitHistory(limits, s) {
  const rates = s.rules.filter((r) => r.rate && !r.shadow && !r.keys).map((r) => r.rate);
  const now = s.seconds.start + seconds - 1;
  if (rates.length) limits.set(now, Math.min(...rates));
  for (const at of limits.keys()) if (at < s.seconds.start) limits.delete(at);
  return s.seconds.passed.map((_, i) => limits.get(s.seconds.start + i) ?? null);
}

function draw(parts, s, limit, ruleItem) {
  show(parts.sub, document.createTextNode(`${count(s.rules.length, "rule")} · known to ${count(s.known, "instance")} · ${number(s.inFlight)} in flight${s.waiting ? `, ${number(s.waiting)} waiting` : ""}`));
  show(parts.missing, absent(s.instances), s.known === 0 && h("p", { class: "note" }, "No instance knows this resource: it was not called in the last minute, and no rule names it."));
  const events = s.events.filter((e) => e.type !== "source").map((e) => ({ at: e.at, label: label(e), tone: toneOfEvent(e) }));
  const width = widthOf(parts.chart);
  show(parts.chart, legend(["pass", "passed"], ["wait", "passed after a wait"], ["refuse", "refused"], [null, "┄ effective limit"], [null, "▾ events"]),
    stacked(s.seconds, { width, limit, events, label: "calls a second in the last minute" }));
  drawLanes(parts.lanes, s, width);
  const t = s.responseTimes;
  show(parts.times, h("h2", null, "Response times"), legend([null, "— mean"], [null, "— longest"], [null, t ? `p50 ${duration(t.p50)} · p90 ${duration(t.p90)} · p99 ${duration(t.p99)}, of the slowest instance` : "no call has ended of late"]),
    lines([{ ys: s.seconds.mean, kind: "pass" }, { ys: s.seconds.max, kind: "wait" }], { width, unit: duration, label: "response times in the last minute, mean and longest" }));
  const pool = s.rules.find((r) => r.gauge?.unit === "at once");
  show(parts.flight, h("h2", null, "Calls in flight"), lines([{ ys: s.seconds.inFlight, kind: "plain" }, pool && { ys: s.seconds.inFlight.map(() => pool.gauge.limit), kind: "limit" }].filter(Boolean),
    { width, label: `calls in flight in the last minute${pool ? ", and their limit" : ""}` }), pool && legend([null, `┄ limit of ${plain(pool.rule, 60)}, ${number(pool.gauge.limit)} at once`]));
  const hot = s.rules.filter((r) => r.values);
  show(parts.side, card("Rules", s.rules.length ? h("ul", { class: "list" }, s.rules.map(ruleItem)) : none("No rule guards this resource.")),
    waits(s),
    hot.map((r) => card(`Hottest ${plain((r.keys ?? ["values"]).join(", "), 60)}`, hottest(r))),
    card("Events", scroller("Events", s.events.length ? eventList(s.events) : none("Nothing has happened here yet."))));
}

// drawLanes shows the states of rules that have some, from the events of the minute.
function drawLanes(into, s, width) {
  const stateful = s.rules.filter((r) => r.states);
  into.hidden = !stateful.length;
  if (into.hidden) return;
  const lanes = stateful.map((r, n) => h("g", { transform: `translate(0,${n * 38})` }, lane(`${r.rule}`, stateParts(r, s), { width, start: s.seconds.start })));
  show(into, h("h2", null, "States"), h("svg", { viewBox: `0 0 ${width} ${lanes.length * 38}`, height: lanes.length * 38, role: "img", "aria-label": "states of rules in the last minute" }, lanes));
}

// stateParts turns changes of a state into stretches of time. Of several instances it shows those that
// leave the first state.
function stateParts(r, s) {
  const changes = s.events.filter((e) => e.type === "state" && e.rule === r.rule && e.kind === r.kind).reverse();
  const parts = [];
  let state = changes[0]?.from ?? r.states[r.states.length - 1].state, from = null;
  for (const e of changes) {
    parts.push({ state, from, to: e.at, tone: toneOf(state, r.first) });
    [state, from] = [e.to, e.at];
  }
  return [...parts, { state, from, to: null, tone: toneOf(state, r.first) }];
}

function ruleItem(r, of, strip, me) {
  const g = r.gauge, place = r.document && `${r.document}:${r.line}`;
  const limits = r.fields.filter((f) => !["resource", "match"].includes(f.name)).map((f) => `${f.name} ${f.value}`).join(", ");
  return h("li", { "data-key": `${r.kind}/${r.rule}`.slice(0, 300) }, h("div", { class: "grow" }, h("b", null, name(r.rule, 80)), " ", h("span", { class: "dim" }, plain(r.kind)),
    g && h("div", null, bar(g.used / g.limit), h("span", { class: "n" }, `${number(g.used)} of ${number(g.limit)} ${g.unit}`)),
    h("div", { class: "dim" }, plain(limits, 300)),
    offText(r, strip, of),
    (r.notes ?? []).slice(0, 3).map((n) => h("div", { class: "dim" }, plain(n, 300))),
    place && h("div", null, h("a", { class: "dim", href: "#/rules?" + new URLSearchParams({ name: r.document, line: r.line }) }, name(place, 80))),
    maySwitch(me) && !r.off && h("div", null, h("button", { type: "button", "data-off": JSON.stringify({ kind: r.kind, rule: r.rule }), "aria-label": `Switch ${plain(r.rule, 60)} off` }, "Switch off")),
  h("div", { class: "tags" }, r.shadow ? tag(`shadow: would refuse ${number(r.would)}`, "shadow") : tag(`refused ${number(r.second)}/s, ${number(r.minute)} in the minute`, r.minute ? "refuse" : ""),
    (r.states ?? []).map((s) => tag(s.instances > 1 ? `${plain(s.state)} on ${s.instances}` : plain(s.state), toneOf(s.state, r.first))))));
}

// waits says who waits at which rule, where, and who is in front.
function waits(s) {
  const at = s.rules.flatMap((r) => (r.waits ?? []).map((w) => ({ r, ...w })));
  return at.length > 0 && card("Who waits", h("ul", { class: "list" }, at.slice(0, 20).map((w) => h("li", null, h("div", { class: "grow" }, h("b", null, name(w.r.rule, 80)), w.instance !== "this process" && h("span", { class: "dim" }, " on ", name(w.instance, 40)),
    w.who && h("div", null, name(w.who, 400)), w.since && h("div", { class: "dim" }, "the oldest since ", clock(w.since))),
  h("div", { class: "tags" }, w.waiting > 0 && tag(`${number(w.waiting)} wait`, "wait"), w.tenants > 0 && tag(`${count(w.tenants, "tenant")}, at most ${number(w.longest)} of one`))))));
}

function hottest(r) {
  const most = Math.max(...r.values.map((v) => v.passed + v.refused), 1);
  return h("ul", { class: "list" }, r.values.map((v) => h("li", null, h("span", { class: "grow n" }, name(v.value, 60)), bar((v.passed + v.refused) / most, ""),
    h("span", { class: "n" }, number(v.passed + v.refused)), v.refused ? tag(`${number(v.refused)} refused`, "refuse") : "")));
}

// explainer asks what rules would do to a call: one field for each attribute that rules look at.
function explainer(of) {
  const fields = h("div", { class: "fields" }), answer = h("div", { role: "status" });
  const field = (key) => h("label", { "data-name": key }, plain(key, 40), h("input", { name: key, autocomplete: "off", spellcheck: "false" }));
  const form = h("form", { class: "card", onsubmit: async (event) => {
    event.preventDefault();
    const query = new URLSearchParams({ resource: of });
    for (const [key, value] of new FormData(form)) if (value) key === "origin" ? query.set(key, value) : query.append("attr", `${key}=${value}`);
    show(answer, ...await get("explain", query).then(verdicts, (err) => [h("p", { class: "err" }, err.message)]));
  } }, h("h2", null, "Why would a call be refused?"), fields, h("div", { class: "buttons" }, h("button", null, "Explain")), answer);
  fields.append(field("origin"));
  return { element: form, keys(rules) {
    const keys = new Set(rules.flatMap((r) => r.keys ?? []).map((key) => (key === "ipPrefix" ? "ip" : key)));
    for (const key of keys) if (![...fields.children].some((f) => f.dataset.name === key)) fields.prepend(field(key));
  } };
}

function verdicts(e) {
  const refusing = e.rules.filter((r) => r.refuses && !r.shadow), shadows = e.rules.filter((r) => r.refuses && r.shadow), off = e.rules.filter((r) => r.off && !r.refuses);
  const where = (r) => (e.total > 1 ? ` on ${r.refuses} of ${count(e.asked, "instance")}` : "");
  const say = (r, what, kind) => h("p", { class: kind }, h("b", null, name(r.rule, 80)), ` (${plain(r.kind)}) ${what}${where(r)}: ${r.why}`,
    r.retryAfter ? `; such a call passes in ${duration(r.retryAfter)}` : "", ".", r.document ? [" ", name(`${r.document}:${r.line}`, 80)] : "");
  return [
    ...refusing.map((r) => say(r, "refuses it now", "err")), ...shadows.map((r) => say(r, "would refuse it, and is a shadow", "ok")),
    ...off.map((r) => say({ ...r, refuses: r.off }, "would refuse it, and is switched off", "ok")),
    h("p", { class: "ok" }, refusing.length ? `All other rules let it pass (${e.rules.length - refusing.length}).` : e.rules.length ? `All ${count(e.rules.length, "rule")} let it pass now.` : "No rule looks at such a call: it passes."),
    e.asked < e.total && h("p", { class: "err" }, `${e.total - e.asked} of ${count(e.total, "instance")} did not answer.`),
  ].filter(Boolean);
}
