// All resources, those that refuse most first, the rules that refuse, and events on the same time.
import { bar, card, count, duration, h, linkTo, name, none, number, plain, scroller, show, table, tag } from "./dom.js";
import { legend, spark, stacked, total, trend, widthOf } from "./charts.js";
import { eventList, label, toneOf, toneOfEvent } from "./events.js";

const sorts = { refused: "refused/s", passed: "pass/s", p99: "p99", inFlight: "in flight", name: "resource" };

export function overview(place, { sort = "refused", match = "" }) {
  const search = h("input", { type: "search", name: "match", value: match, placeholder: "orders:* or ~expression", "aria-label": "show only resources that match" });
  const form = h("form", { class: "fields", role: "search", "aria-label": "resources", onsubmit: (event) => {
    event.preventDefault();
    location.hash = address({ sort, match: search.value.trim() });
  } }, search);
  const body = h("div");
  place.append(h("h1", null, "Overview"), h("p", { class: "sub" }, "What passes, what is refused, and by which rule, in all instances together."), body);
  return { query: { sort, match }, show: (s) => draw(body, form, s, sort, match) };
}

const address = ({ sort, match }) => "#/overview?" + new URLSearchParams({ sort, ...(match && { match }) });

function draw(body, form, s, sort, match) {
  if (!body.firstChild) {
    body.append(h("div", { id: "missing" }), h("div", { class: "row tiles" }), h("section", { class: "card chart row" }), h("div", { class: "row two" },
      h("section", { class: "card" }, h("h2", null, "Resources"), form, h("div", { id: "rows" })), h("div", { class: "stack" })));
  }
  const [missing, tiles, chart, two] = body.children;
  show(missing, absent(s.instances), s.total > s.resources.length && h("p", { class: "sub", id: "of" }, `The totals are those of the ${s.resources.length} resources below, of ${number(s.total)}${match ? " that match" : ""}.`));
  show(tiles, tileList(s));
  const events = s.events.map((e) => ({ at: e.at, label: label(e), tone: toneOfEvent(e) }));
  show(chart, legend(["pass", "passed"], ["wait", "passed after a wait"], ["refuse", "refused"], [null, "▾ events"]),
    stacked(s.sum, { width: widthOf(chart), height: 130, events, label: "calls a second in the last minute" }));
  show(two.querySelector("#rows"), s.resources.length ? resourceTable(s, sort, match) : none(match ? "No resource matches." : "No calls yet, and no rule names a resource."));
  show(two.lastChild, card("What refuses, last minute", refusers(s.refusers)), card("Events", scroller("Events", s.events.length ? eventList(s.events) : none("Nothing has happened yet."))));
}

// absent names the instances whose calls are missing.
export function absent(instances) {
  const silent = instances.filter((i) => i.error);
  return silent.length > 0 && h("div", { class: "note", role: "status" }, h("b", null, `${silent.length} of ${count(instances.length, "instance")} missing here: `),
    silent.slice(0, 5).map((i) => [name(i.name, 40), ` (${plain(i.error, 200)}) `]), silent.length > 5 && `and ${silent.length - 5} more`);
}

const last = (ys) => ys[ys.length - 1];

function tileList(s) {
  const all = total(s.sum), share = s.sum.refused.map((v, i) => (all[i] ? (100 * v) / all[i] : 0));
  const flight = s.resources.reduce((sum, r) => sum + r.inFlight, 0), slow = Math.max(0, ...s.resources.map((r) => r.p99));
  const failed = s.sum.failed ?? [];
  return [
    tile("calls", number(last(all)), "/s", trend(all, "pass")),
    tile("refused", number(last(share)), "%", trend(share, "refuse")),
    tile("failed", number(last(failed)), "/s", trend(failed, "wait")),
    tile("in flight", number(flight), slow ? `p99 ${duration(slow)}` : ""),
  ];
}

const tile = (title, value, unit, chart) => h("div", { class: "card tile" }, h("div", { class: "l" }, h("span", null, title), h("span", null, chart ? "60 s" : "now")),
  h("div", { class: "v n" }, value, h("small", { class: "dim n" }, ` ${unit}`)), chart);

function resourceTable(s, sort, match) {
  const head = (by, more) => h("th", { scope: "col", class: more, "aria-sort": sort === by ? (by === "name" ? "ascending" : "descending") : null },
    h("a", { href: address({ sort: by, match }), "aria-current": sort === by ? "true" : null }, sorts[by], sort === by ? " ▾" : ""));
  return table("resources", [head("name"), "last minute", head("passed", "num"), head("refused", "num"), head("p99", "num narrow-off"), head("inFlight", "num narrow-off"), h("th", { scope: "col", class: "narrow-off" }, "refuses most")], s.resources.map(resourceRow));
}

function resourceRow(r) {
  const passed = last(r.seconds.passed) + last(r.seconds.waited), refused = last(r.seconds.refused);
  return h("tr", { "data-key": r.name.slice(0, 300) }, h("td", { class: "name" }, linkTo(r.name, 80), (r.states ?? []).map((state) => tag(plain(state), toneOf(state))), r.off && tag("rules off", "wait")),
    h("td", null, spark(r.seconds)), h("td", { class: "num n" }, number(passed)), h("td", { class: `num n ${refused ? "bad" : "dim"}` }, number(refused)),
    h("td", { class: "num n narrow-off" }, duration(r.p99)), h("td", { class: "num n narrow-off" }, number(r.inFlight), r.waiting ? tag(`${number(r.waiting)} wait`, "wait") : ""),
    h("td", { class: "wrap narrow-off" }, r.refuser ? [name(r.refuser.rule, 40), " ", h("span", { class: "dim" }, plain(r.refuser.kind))] : h("span", { class: "dim" }, "—")));
}

function refusers(list) {
  if (!list.length) return none("Nothing was refused in the last minute.");
  const most = list[0].minute;
  return h("ul", { class: "list" }, list.map((r) => h("li", { "data-key": `${r.kind}/${r.rule}`.slice(0, 300) }, h("span", { class: "grow" }, h("b", null, name(r.rule, 60)), " ", h("span", { class: "dim" }, plain(r.kind)), r.off && tag("off", "wait")),
    bar(r.minute / most, "full"), h("span", { class: "n" }, number(r.minute)))));
}
