// Charts of a minute, as SVG. Areas that are refused are hatched, so that no colour is the only sign.
import { h, number, plain } from "./dom.js";

export const seconds = 59; // that a series has

const d = (points) => "M" + points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L");

// area fills between two curves; base may be left out.
export function area(ys, { width, height, most, base }, kind) {
  const x = (i) => (i * width) / (ys.length - 1), y = (v) => height - (v / most) * height;
  const top = ys.map((v, i) => [x(i), y(v + (base?.[i] ?? 0))]);
  const bottom = ys.map((_, i) => [x(i), y(base?.[i] ?? 0)]).reverse();
  return h("path", { class: `a-${kind}`, d: d([...top, ...bottom]) + "Z" });
}

// line draws a curve, and leaves out what is not known.
export function line(ys, { width, height, most }, kind) {
  let path = "", open = false;
  ys.forEach((v, i) => {
    if (v === null || v === undefined) return void (open = false);
    path += `${open ? "L" : "M"}${((i * width) / (ys.length - 1)).toFixed(1)},${(height - (v / most) * height).toFixed(1)}`;
    open = true;
  });
  return h("path", { class: `l-${kind}`, d: path || "M0,0" });
}

const add = (a, b) => a.map((v, i) => v + (b?.[i] ?? 0));

export const total = (s) => add(add(s.passed, s.waited), s.refused);

// spark draws a series into a cell of a table.
export function spark(s) {
  const box = { width: 150, height: 26, most: Math.max(1, ...total(s)) * 1.1 }, passed = add(s.passed, s.waited);
  return h("svg", { viewBox: "0 0 150 26", preserveAspectRatio: "none", "aria-hidden": "true" },
    area(passed, box, "pass"), area(s.refused, { ...box, base: passed }, "refuse"), line(passed, box, "pass"));
}

// trend draws one curve into a tile.
export function trend(ys, kind) {
  const box = { width: 300, height: 34, most: Math.max(1e-9, ...ys) * 1.15 };
  return h("svg", { viewBox: "0 0 300 34", preserveAspectRatio: "none", "aria-hidden": "true" },
    area(ys, box, kind === "refuse" || kind === "wait" ? "plain" : "pass"), line(ys, box, kind));
}

// scale returns the top of an axis and the steps on it.
export function scale(most) {
  const rough = Math.max(most, 1) / 3, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  return { most: Math.max(most * 1.08, step * 1.2), steps: [0, 1, 2, 3, 4].map((n) => n * step) };
}

export function axes(width, height, { most, steps }, unit = number) {
  const marks = steps.filter((v) => v <= most).map((v) => [
    h("line", { class: "grid", x1: 0, x2: width, y1: height - (v / most) * height, y2: height - (v / most) * height }),
    h("text", { class: "axis", x: 2, y: height - (v / most) * height - 3 }, unit(v))]);
  const times = [[0, "−60 s", "start"], [1 / 3, "−40 s", "middle"], [2 / 3, "−20 s", "middle"], [1, "now", "end"]].map(([share, text, anchor]) =>
    h("text", { class: "axis", x: share * width, y: height + 15, "text-anchor": anchor }, text));
  return [marks, times];
}

// place says where on the axis an instant is, from 0 to 1.
export const place = (start, at) => (new Date(at) / 1000 - start) / seconds;

// pins draws events as numbered lines. There may be many at once: each is at least a few pixels apart.
export function pins(events, start, width, height) {
  let last = -Infinity;
  return [...events].reverse().map((e) => {
    const x = place(start, e.at) * width;
    if (x < 0 || x > width || x - last < 3) return null;
    last = x;
    return h("g", null, h("title", null, plain(e.label)), h("line", { class: "l-event", x1: x, x2: x, y1: 0, y2: height }),
      h("path", { class: `a-${e.tone || "plain"}`, d: `M${x - 4},0h8l-4,7z` }));
  });
}

const hatching = () => h("defs", null, h("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
  h("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 6 })));

// stacked draws what passed, waited and was refused, one above the other, with limits and events.
export function stacked(s, { width, height = 210, limit, events = [], label }) {
  const passed = add(s.passed, s.waited), all = add(passed, s.refused);
  const known = (limit ?? []).filter((v) => v !== null);
  const axis = scale(Math.max(...all, ...(known.length && Math.max(...known) < 4 * Math.max(...all, 1) ? known : [0])));
  const box = { width, height, most: axis.most };
  const refused = area(s.refused, { ...box, base: passed }, "refuse");
  const hatched = h("path", { d: refused.getAttribute("d"), fill: "url(#hatch)" });
  const now = (ys) => number(ys[ys.length - 1]);
  return h("svg", { viewBox: `0 0 ${width} ${height + 20}`, height: height + 20, role: "img", "aria-label": `${label}: now ${now(passed)} passed and ${now(s.refused)} refused, ${number(Math.max(...all))} at the most` },
    hatching(), area(s.passed, box, "pass"), area(s.waited, { ...box, base: s.passed }, "wait"), refused, hatched, axes(width, height, axis),
    line(passed, box, "pass"), known.length ? line(limit.map((v) => (v === null ? null : Math.min(v, axis.most))), box, "limit") : null,
    pins(events, s.start, width, height));
}

// lines draws curves of one unit.
export function lines(curves, { width, height = 90, unit = number, label }) {
  const axis = scale(Math.max(1e-6, ...curves.flatMap((c) => c.ys.filter((v) => v !== null))));
  return h("svg", { viewBox: `0 0 ${width} ${height + 20}`, height: height + 20, role: "img", "aria-label": `${label}: now ${curves.map((c) => unit(c.ys[c.ys.length - 1] ?? 0)).join(", ")}` },
    axes(width, height, axis, unit), curves.map((c) => line(c.ys, { width, height, most: axis.most }, c.kind)));
}

// lane draws the states of a rule as bars, with their names.
export function lane(title, parts, { width, start }) {
  return h("g", null, h("text", { class: "axis", x: 0, y: 10 }, plain(title, 60)), parts.map((p) => {
    const from = Math.max(0, p.from === null ? 0 : place(start, p.from) * width), to = Math.min(width, p.to === null ? width : place(start, p.to) * width);
    if (to <= from) return null;
    return h("g", null, h("rect", { class: `s-${p.tone}`, x: from, y: 15, width: to - from, height: 14 }),
      to - from > 40 ? h("text", { class: "axis ink", x: from + 4, y: 25 }, p.state) : null, h("title", null, p.state));
  }));
}

export const widthOf = (element, otherwise = 860) => Math.max(280, Math.floor((element?.clientWidth ?? otherwise) - 34));

export const legend = (...items) => h("div", { class: "legend" }, items.filter(Boolean).map(([kind, text]) => h("span", null, kind && h("i", { class: `a-${kind}` }), text)));
