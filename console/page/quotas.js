// Limits on what passes in a time, and balances: used, left, and when there is more; and how balances are recharged.
import { bar, card, clock, count, duration, during, h, left, name, none, number, plain, show, table, tag } from "./dom.js";
import { absent } from "./overview.js";
import { maySwitch } from "./switch.js";
import { post } from "./api.js";

export function quotas(place, { of = "" }, me) {
  const who = h("input", { name: "of", value: of, placeholder: "tenant=acme, region=eu", autocomplete: "off", spellcheck: "false", "aria-label": "whose limits" }), body = h("div", { class: "card" }), missing = h("div");
  const recharge = maySwitch(me) ? rechargeForm(of) : null;
  const form = h("form", { class: "card row", onsubmit: (event) => {
    event.preventDefault();
    location.hash = "#/quotas?" + new URLSearchParams({ of: who.value.trim() });
  } }, h("h2", null, "Whose"), h("p", { class: "none" }, "Rules with a limit for each value show that of the attributes that are named here: all that the rule looks at."), h("div", { class: "fields" }, who, h("button", null, "Show")));
  place.append(h("h1", null, "Quotas"), h("p", { class: "sub" }, "What passes in a time, and balances: the nearest to their end first."), missing, form, recharge?.element ?? "", body);
  body.addEventListener("click", ({ target }) => target.dataset.balance && recharge.choose(JSON.parse(target.dataset.balance)));
  return { query: { of }, show(s) {
    show(missing, absent(s.instances));
    show(body, s.quotas.length ? table("what is left of limits", ["rule", "left", h("th", { class: "num" }, "used"), h("th", { class: "num" }, "limit"), "resets", ""], s.quotas.map((q) => row(q, recharge))) : none("No rule in force limits what passes in a time."),
      s.more > 0 && none(`and ${number(s.more)} more`));
  } };
}

function row(q, recharge) {
  const key = [q.kind, q.rule, q.resource, q.value].map((part) => part ?? "").join("/"), all = q.effective, share = q.unknown ? 0 : all > 0 ? 1 - q.left / all : q.left > 0 ? 0 : 1;
  return h("tr", { "data-key": key.slice(0, 600) }, h("td", { class: "name" }, h("b", null, name(q.rule, 60)), " ", h("span", { class: "dim" }, plain(q.kind, 40)), q.value && h("div", null, name(q.value, 80)), q.resource && h("div", { class: "dim" }, name(q.resource, 80))),
    h("td", { class: "n" }, q.prepaid || all === null ? "" : bar(share), q.unknown ? "unknown" : number(q.left), all === null && " (all pass)"), h("td", { class: "num n" }, q.used === undefined ? "—" : number(q.used)),
    h("td", { class: "num n" }, q.prepaid ? "—" : `${number(q.limit)} per ${windowText(q.window)}`, q.instances > 1 && !q.fleet && h("div", { class: "dim" }, `on each of ${number(q.instances)}`)),
    h("td", null, q.prepaid ? h("span", { class: "dim" }, "when recharged") : q.resetsAt && q.window > 60 ? [clock(q.resetsAt), h("div", { class: "dim" }, left(q.resetsAt))] : h("span", { class: "dim" }, q.window > 60 ? "—" : "at once")),
    h("td", null, h("div", { class: "tags" }, q.fleet && tag("fleet"), q.prepaid && tag(q.left > 0 || q.unknown ? "balance" : "balance is used up", q.left > 0 || q.unknown ? "" : "refuse"), q.shadow && tag("shadow", "shadow"), q.off && tag("off", "wait"), q.penalty > 0 && tag(`refused for ${duration(q.penalty)}`, "refuse")),
      q.prepaid && recharge && h("button", { type: "button", "data-balance": JSON.stringify({ kind: q.kind, rule: q.rule, resource: q.resource ?? "", value: q.value ?? "" }), "aria-label": `Recharge ${plain(q.rule, 60)}` }, "Recharge")));
}

const windowText = (seconds) => (seconds === 1 ? "s" : duration(seconds));

// rechargeForm adds tokens to a balance: it says what it would do, and does so when that is confirmed.
function rechargeForm(of) {
  const what = h("p", { class: "none" }), tokens = h("input", { name: "tokens", type: "number", step: 1, required: true, placeholder: "1000" }), reason = h("input", { name: "reason", required: true, maxlength: 200, placeholder: "invoice 4711" });
  const button = h("button", null, "Recharge"), no = h("button", { type: "button", hidden: true }, "Do not"), sure = h("p", { class: "note", hidden: true }), done = h("div", { role: "status" });
  let balance = null, isSure = false;
  const ask = (on) => {
    [isSure, sure.hidden, no.hidden] = [on, !on, !on];
    show(button, document.createTextNode(on ? "Yes, do it" : "Recharge"));
    button.className = on ? "go" : "";
    show(sure, document.createTextNode(on ? `${number(Math.abs(Number(tokens.value)))} tokens are ${Number(tokens.value) < 0 ? "taken off" : "added to"} the balance of ${plain(balance.rule, 60)}${balance.value && ` for ${plain(balance.value, 80)}`}.` : ""));
  };
  const element = h("form", { class: "card row", hidden: true, oninput: () => ask(false), onsubmit: async (event) => {
    event.preventDefault();
    if (!isSure) return ask(true);
    const body = { kind: balance.kind, rule: balance.rule, resource: balance.resource, of: balance.value && of, tokens: Number(tokens.value), reason: reason.value };
    show(done, await during(button, post("recharge", body)).then(outcome, (err) => h("p", { class: "err" }, err.message)));
    tokens.value = "";
    ask(false);
  } }, h("h2", null, "Recharge"), what, h("div", { class: "fields" }, h("label", null, "Tokens (below 0 to take some off)", tokens), h("label", null, "Why", reason)), sure, h("div", { class: "buttons" }, button, no), done);
  no.addEventListener("click", () => ask(false));
  return { element, choose(chosen) {
    balance = chosen;
    element.hidden = false;
    show(what, document.createTextNode(`The balance of ${plain(chosen.rule, 80)} (${plain(chosen.kind, 40)})${chosen.value && ` for ${plain(chosen.value, 80)}`}${chosen.resource && ` on ${plain(chosen.resource, 80)}`}.`));
    show(done);
    ask(false);
    tokens.focus();
  } };
}

const outcome = (r) => [r.done > 0 && h("p", { class: "ok" }, `Done${r.total > 1 ? ` on ${r.done} of ${count(r.total, "instance")}` : ""}: ${number(r.left)} left.`),
  r.failed.slice(0, 20).map((i) => h("p", { class: "err" }, h("b", null, name(i.name, 60)), ` did not do it: ${plain(i.error, 300)}`)),
  r.unsure && h("p", { class: "err" }, "It may have been done nevertheless: look at what is left before you try again.")];
