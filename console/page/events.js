// Events in words.
import { clock, count, duration, h, linkTo, name, plain, tag } from "./dom.js";
import { scopeText } from "./switch.js";

const tones = { open: "refuse", halfOpen: "wait", closed: "pass" };

// toneOf returns the colour of a state: the first one of its kind is good, whatever its name.
export const toneOf = (state, first) => (state && state === first ? "pass" : tones[state] ?? "wait");

const by = (e) => (e.by && !e.ended ? [" by ", name(e.by, 60)] : "");
const rule = (e) => (e.rule ? h("b", null, name(e.rule)) : h("b", null, `all ${plain(e.kind ?? "")}`));
const why = (e) => (e.error || e.text ? `: ${plain(e.error || e.text, 300)}` : "");

const words = {
  swap: (e) => [`${count(e.swap?.rules ?? 0, "rule")} in force`, changes(e.swap), e.source ? ", from " : "", e.source ? name(e.source, 60) : ""],
  rejection: (e) => [h("b", null, name(e.document ?? "")), ` rejected${why(e)}`],
  state: (e) => [rule(e), ` ${plain(e.from ?? "")} → ${plain(e.to ?? "")}`, e.resource ? [" on ", linkTo(e.resource, 60)] : "", e.forced ? " (forced)" : "", why(e)],
  forced: (e) => [rule(e), e.to ? ` forced to ${plain(e.to)}` : released(e), by(e), why(e)],
  switch: (e) => [scopeText(e), e.to ? ` switched ${plain(e.to)}` : released(e), by(e), why(e)],
  source: (e) => [h("b", null, name(e.source ?? "", 60)), ` ${plain(e.to ?? "")}${why(e)}`],
  refusal: (e) => [rule(e), " refused a call of ", linkTo(e.resource ?? "", 60), e.cannotPass ? "" : `, again in ${duration(e.retryAfter)}`],
  recharge: (e) => [rule(e), by(e), why(e)],
  warning: (e) => [e.rule || e.kind ? rule(e) : "", e.resource ? [" on ", linkTo(e.resource, 60)] : "", why(e)],
  instance: (e) => [e.to === "gone" ? "its report is gone: it has ended, hangs or does not reach etcd" : "reports to etcd"],
  list: (e) => ["list ", h("b", null, name(e.resource ?? "")), ` ${plain(e.to ?? "")}${why(e)}`],
  fleet: (e) => [e.error ? `backend of the fleet: ${plain(e.error.replace(/^fleet: /, ""), 300)}` : plain(e.text ?? "", 300)],
};

const released = (e) => (e.ended ? " released: its time is over" : " released");

const changes = (s) => (s ? ` (+${s.added} ~${s.changed} −${s.removed})` : "");

const kinds = { state: "breaker", swap: "rules", rejection: "document" };

export function toneOfEvent(e) {
  if (e.type === "state") return toneOf(e.to, "");
  if (e.type === "swap") return "pass";
  return e.type === "rejection" || e.error ? "refuse" : "wait";
}

// label is the event as one line of text.
export const label = (e) => `${new Date(e.at).toTimeString().slice(0, 8)} ${e.instance}: ${sentence(e).textContent}`;

const sentence = (e) => h("span", { class: "grow" }, (words[e.type] ?? ((o) => [h("b", null, plain(o.type)), ` ${plain(o.resource ?? o.source ?? "", 60)}${why(o)}`]))(e));

// eventList shows events, the newest first. What all instances tell within a second is one line.
export function eventList(events, most = 30) {
  const lines = [];
  for (const e of events) {
    const text = sentence(e), twin = lines.find((l) => l.text.textContent === text.textContent && Math.abs(new Date(l.e.at) - new Date(e.at)) < 2000);
    if (twin) twin.where.add(e.instance);
    else lines.push({ e, text, where: new Set([e.instance]) });
  }
  return h("ul", { class: "list" }, lines.slice(0, most).map(({ e, text, where }) => {
    if (where.size > 1) text.append(h("span", { class: "dim" }, ` on ${where.size} instances`));
    else if (e.instance !== "this process") text.append(h("span", { class: "dim" }, " on ", name(e.instance, 40)));
    return h("li", { "data-key": `${e.instance}/${e.id}` }, clock(e.at), text, tag(e.type === "state" ? plain(e.kind ?? "") : kinds[e.type] ?? plain(e.type), toneOfEvent(e)));
  }));
}
