// Elements, without a framework: h makes them, morph brings those on the page to a new state and leaves
// focus, selection and scrolling alone. Nothing here reads text as HTML.

const svgNamespace = "http://www.w3.org/2000/svg";
const svgTags = new Set(["svg", "path", "line", "rect", "text", "g", "defs", "pattern", "title"]);

// h makes an element. Attributes that are null or false are left out; width is that of a bar, in per cent.
export function h(tag, attributes, ...children) {
  const element = svgTags.has(tag) ? document.createElementNS(svgNamespace, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "percent") element.style.width = `${Math.max(0, Math.min(100, value))}%`;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// morph changes an element so that it is like another one. Children with a data-key keep their element.
export function morph(from, to) {
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  for (const { name } of [...from.attributes]) if (name !== "style" && !to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (name !== "style" && from.getAttribute(name) !== value) from.setAttribute(name, value);
  if (to.style && from.style.cssText !== to.style.cssText) from.style.cssText = to.style.cssText;
  morphChildren(from, [...to.childNodes]);
}

function morphChildren(parent, wanted) {
  const keyed = new Map([...parent.childNodes].filter((c) => c.dataset?.key).map((c) => [c.dataset.key, c]));
  let at = parent.firstChild;
  for (const next of wanted) {
    const key = next.dataset?.key;
    let present = key ? keyed.get(key) : at;
    if (present && (present.nodeName !== next.nodeName || present.dataset?.key !== key)) present = null;
    if (!present) {
      parent.insertBefore(next, at);
      continue;
    }
    if (present === at) at = at.nextSibling;
    else parent.insertBefore(present, at);
    morph(present, next);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// show brings the children of an element to a new state. What is moved keeps the focus.
export function show(parent, ...children) {
  const focused = document.activeElement;
  morphChildren(parent, children.flat(Infinity).filter(Boolean));
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

// during waits for work that a button began, which cannot begin it again meanwhile and keeps the focus.
export async function during(button, work) {
  const focused = document.activeElement === button;
  button.disabled = true;
  try {
    return await work;
  } finally {
    button.disabled = false;
    if (focused && document.activeElement === document.body) button.focus();
  }
}

const longest = 160;
const unseen = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

// plain returns a text of somebody else as it can be shown: what is not seen or changes the direction is
// written as a number, and what is too long is cut.
export function plain(text, most = longest) {
  const cut = text.length > most ? text.slice(0, most) + "…" : text;
  return cut.replace(unseen, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// name shows a name of somebody else, by itself: its direction changes nothing around it.
export function name(text, most) {
  return h("bdi", { title: text.length > longest ? null : plain(text) }, plain(text, most) || "(no name)");
}

export const linkTo = (resource, most) => h("a", { href: "#/resource?" + new URLSearchParams({ name: resource }) }, name(resource, most));

export const tag = (text, kind) => h("span", { class: kind ? `tag ${kind}` : "tag" }, text);

export function bar(share, kind) {
  return h("span", { class: "bar" }, h("i", { class: kind ?? (share >= 1 ? "full" : share >= 0.9 ? "high" : null), percent: share * 100 }));
}

export const card = (title, ...children) => h("section", { class: "card" }, title && h("h2", null, title), ...children);

// none says that there is nothing, in place of an empty table.
export const none = (text) => h("p", { class: "none" }, text);

// scroller shows a part of what it has, and the rest to those who scroll, also by the keyboard.
export const scroller = (label, ...children) => h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, children);

export function table(label, head, rows) {
  return h("table", { "aria-label": label },
    h("thead", null, h("tr", null, head.map((c) => (c instanceof Node ? c : c ? h("th", { scope: "col" }, c) : h("td"))))), h("tbody", null, rows));
}

// number writes a number with three digits, or whole. Intl.NumberFormat does the same, and loads the data of all languages
// first, which took longer than to lay the page out.
export function number(n) {
  if (Math.abs(n) < 100) return String(Number(Number(n).toPrecision(3)));
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

// duration shows seconds.
export function duration(seconds) {
  if (!seconds) return "—";
  if (seconds < 0.001) return `${number(seconds * 1e6)} µs`;
  if (seconds < 1) return `${number(seconds * 1e3)} ms`;
  if (seconds < 120) return `${number(seconds)} s`;
  if (seconds < 7200) return `${number(Math.floor(seconds / 60))} min`;
  return seconds < 172800 ? `${number(Math.floor(seconds / 3600))} h` : `${number(Math.floor(seconds / 86400))} d`;
}

// now is the instant by the clock of the console, which that of the browser may differ from.
let behind = 0;
const now = () => Date.now() + behind;
export function setClock(at) {
  const off = at - Date.now();
  behind = Math.abs(off) > 2000 ? off : 0; // it is told in whole seconds
}

// left shows how long it takes until an instant. The frame of the page keeps it current.
export const left = (until) => h("span", { class: "n", "data-until": until }, leftText(until));

export function leftText(until) {
  const seconds = Math.round((new Date(until) - now()) / 1000);
  return seconds > 0 ? `${duration(seconds)} left` : "over";
}

export const count = (n, one, many = one + "s") => `${number(n)} ${n === 1 ? one : many}`;

// clock shows when something happened or will: today by its time, else by its date, too. What is to come is rounded: the
// end of a month is computed a moment before midnight.
export function clock(text) {
  const exact = Date.parse(text), at = new Date(exact > now() ? Math.round(exact / 1000) * 1000 : exact);
  const today = at.toDateString() === new Date(now()).toDateString(), two = (n) => String(n).padStart(2, "0");
  return h("time", { class: "n", datetime: text, title: at.toString() },
    (today ? "" : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} `) + at.toTimeString().slice(0, 8));
}
