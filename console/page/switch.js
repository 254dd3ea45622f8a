// Rules that are switched off or on: who has done it, why and until when, and the form that does it.
import { card, clock, count, during, h, left, name, plain, show, tag } from "./dom.js";
import { post } from "./api.js";

export const maySwitch = (me) => me.role === "operator" || me.role === "editor";

// switchOf returns the switch that counts for a rule, the narrowest; undefined if there is none.
export function switchOf(switches, kind, rule, resource) {
  const of = (k, r, on) => switches.find((s) => (s.kind ?? "") === k && (s.rule ?? "") === r && (s.resource ?? "") === on);
  return of(kind, rule, "") ?? (resource === undefined ? undefined : of("", "", resource)) ?? of(kind, "", "") ?? of("", "", "");
}

const scopeOf = ({ kind, rule, resource }) => (kind ? { kind, ...(rule && { rule }) } : resource ? { resource } : { all: true });

// scopeText says what is switched.
export function scopeText({ kind, rule, resource }) {
  if (rule) return [h("b", null, name(rule, 60)), ` (${plain(kind, 40)})`];
  if (kind) return h("b", null, `all ${plain(kind, 40)} rules`);
  return resource ? [h("b", null, "all rules"), " for ", name(resource, 60)] : h("b", null, "all rules");
}

// switchText says how a scope is switched, by whom, until when and why.
export const switchText = (s, instances) => [` ${plain(s.state, 40)}`, s.instances < instances && ` on ${s.instances} of ${count(instances, "instance")}`, s.by && [" by ", name(s.by, 60)],
  s.until ? [" until ", clock(s.until), ", ", left(s.until)] : " until it is released", s.reason && [": ", name(s.reason, 300)]];

// offText says that a rule is off, and why.
export function offText(r, strip, resource) {
  const s = r.off && switchOf(strip.switches, r.kind, r.rule, resource);
  return r.off ? h("div", { class: "note flat" }, tag("off", "wait"), " It refuses nothing. ", s && s.state === "off" ? [scopeText(s), switchText(s, strip.instances)] : `It is off on ${count(r.off, "instance")}.`) : "";
}

// switchCard lists what is switched, and is where it is changed by those who may.
export function switchCard(me) {
  const list = h("ul", { class: "list" }), form = maySwitch(me) ? switchForm() : null;
  const element = card("Switched off and on", list, form?.element);
  if (form) element.addEventListener("click", ({ target }) => target.dataset.scope && form.choose(target.dataset.scope, "release"));
  return {
    element,
    choose: (scope) => form?.choose(scope, "off"),
    show(switches, strip, scopes) {
      show(list, switches.length ? switches.map((s) => h("li", { "data-key": JSON.stringify([scopeOf(s), s.state, s.by, s.reason, !s.until]) }, h("span", { class: "grow" }, scopeText(s), switchText(s, strip.instances)),
        form && h("button", { type: "button", "data-scope": JSON.stringify(scopeOf(s)) }, "Release"))) : h("li", { class: "dim" }, "Nothing is."));
      form?.offer([...scopes, ...switches].map(scopeOf));
    },
  };
}

const option = (value, text) => h("option", { value }, text);

function switchForm() {
  const scope = h("select", { name: "scope", required: true }), state = h("select", { name: "state" }, option("off", "off: it refuses nothing"), option("on", "on, whatever is off more broadly"), option("release", "release"));
  const time = h("select", { name: "for" }, option("10m", "10 minutes"), option("1h", "1 hour"), option("8h", "8 hours"), option("", "until it is released"));
  const reason = h("input", { name: "reason", placeholder: "wrong limit, see incident 7", required: true, maxlength: 200 });
  const button = h("button", { class: "go" }, "Switch"), done = h("div", { role: "status" });
  const update = () => { time.disabled = state.value === "release"; };
  let offered = "";
  const element = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    const release = state.value === "release", body = { ...JSON.parse(scope.value), state: release ? "" : state.value, reason: reason.value, ...(!release && time.value && { for: time.value }) };
    await during(button, post("switch", body)).then((r) => show(done, outcome(r, release ? "Released" : `Switched ${body.state}`)), (err) => show(done, h("p", { class: "err" }, err.message)));
  } }, h("label", null, "What", scope), h("div", { class: "fields" }, h("label", null, "How", state), h("label", null, "For", time)), h("label", null, "Why", reason), h("div", { class: "buttons" }, button), done);
  state.addEventListener("change", update);
  return {
    element,
    // offer lets one choose scopes. A choice that is gone is not replaced by another one.
    offer(scopes) {
      const values = [...new Set(scopes.map((s) => JSON.stringify(s)))], chosen = scope.value;
      if (offered === (offered = values.join("\n"))) return;
      scope.replaceChildren(option("", "choose what"), ...values.map((v) => option(v, h("span", null, scopeText(JSON.parse(v))).textContent)));
      scope.value = values.includes(chosen) ? chosen : "";
    },
    choose(what, how) {
      [scope.value, state.value] = [what, how];
      if (how === "release") reason.value = "not needed any more";
      update();
      reason.focus();
      reason.select();
    },
  };
}

// outcome says which instances did it, and names those that did not.
function outcome(r, what) {
  return [r.done > 0 && h("p", { class: "ok" }, `${what} on ${r.done} of ${count(r.total, "instance")}.`),
    r.total === 0 && h("p", { class: "err" }, "No instance reports: nothing is switched."),
    r.failed.slice(0, 20).map((i) => h("p", { class: "err" }, h("b", null, name(i.name, 60)), ` did not do it: ${plain(i.error, 300)}`)),
    r.failed.length > 20 && h("p", { class: "err" }, `and ${r.failed.length - 20} more did not`),
    r.unsure && h("p", { class: "err" }, "One that does not answer may still do it: above all screens you see what is switched.")];
}
