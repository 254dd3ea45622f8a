// The frame of the page: who looks, which screen, and how all instances are.
import { clock, count, h, leftText, name, number, plain, show } from "./dom.js";
import { follow, get, post } from "./api.js";
import { overview } from "./overview.js";
import { resource } from "./resource.js";
import { rules } from "./rules.js";
import { fleet, instances, lists } from "./fleet.js";
import { quotas } from "./quotas.js";
import { history } from "./history.js";
import { scopeText, switchText } from "./switch.js";

const screens = { overview, resource, rules, quotas, fleet, instances, lists, history };
const strip = document.getElementById("strip"), said = document.getElementById("said"), place = document.getElementById("screen");
let me, end = () => {}, paused = false, latest = null;

// route opens the screen that the address names: "#/resource?name=…".
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const screen = Object.hasOwn(screens, path) ? path : "overview";
  end();
  paused = false;
  document.title = `${screen[0].toUpperCase()}${screen.slice(1)} · ${plain(me.app, 40)} · Penstock`;
  for (const link of document.querySelectorAll("nav a")) {
    const on = link.hash === `#/${screen}` || (screen === "resource" && link.hash === "#/overview");
    on ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  }
  const parameters = Object.fromEntries(new URLSearchParams(query));
  place.replaceChildren();
  const view = screens[screen](place, parameters, me);
  const stop = follow({ screen, ...view.query }, (shown) => {
    latest = shown;
    if (paused) return;
    showStrip(shown.data?.strip, shown.error);
    if (shown.data?.screen) view.show(shown.data.screen, shown.data.strip);
  }, lost);
  end = () => {
    stop();
    view.end?.();
  };
}

async function lost(refused) {
  tell(h("span", null, h("span", { class: "dot bad" }), h("b", null, "No answer"), " from the console: trying again"));
  if (refused) await signIn(await get("me").then(() => null, (err) => err));
}

// tell shows how all is, and announces it when it is not as it was. What changes by itself all the time is not announced.
function tell(...items) {
  show(strip, ...items);
  const text = [...strip.children].filter((item) => !item.matches(".right")).map((item) => {
    const copy = item.cloneNode(true);
    copy.querySelectorAll("[data-until], .often").forEach((e) => e.remove());
    return copy.textContent;
  }).join(", ");
  if (said.textContent !== text) said.textContent = text;
}

const dot = (kind, ...text) => h("span", null, h("span", { class: `dot ${kind}` }), text);

// showStrip says how all instances are.
function showStrip(s, error) {
  if (!s) return;
  const open = s.states.filter((state) => state.state === "open").length;
  tell(
    error && dot("bad", plain(error)),
    s.error && s.error !== error && dot("bad", plain(s.error, 200)),
    s.knownSince && dot("warn", "instances as of ", clock(s.knownSince)),
    me.store && !s.error && dot(s.current < s.instances ? "warn" : "", h("b", null, `${s.current} of ${s.instances}`), " instances on revision ", h("b", { class: "n" }, String(s.revision))),
    s.silent > 0 && dot("bad", h("b", null, number(s.silent)), s.silent === 1 ? " does not answer: its calls are missing here" : " do not answer: their calls are missing here"),
    s.lost > 0 ? dot("bad", h("b", null, count(s.lost, "source")), " not connected") : dot("", "all sources connected"),
    s.onCopy > 0 && dot("warn", h("b", null, number(s.onCopy)), " on a copy of the rules"),
    s.rejected > 0 && dot("bad", h("b", null, count(s.rejected, "document")), " rejected"),
    s.heldBack > 0 && dot("warn", h("b", null, count(s.heldBack, "instance")), " holding a removal back"),
    open > 0 && dot("bad", h("b", null, count(open, "breaker")), " open"),
    s.load && s.load.level !== "none" && dot(s.load.level === "light" ? "" : "warn", "load ", h("b", null, plain(s.load.level, 20)), h("span", { class: "often" }, `: ${number(100 * s.load.utilization)} % of the places taken`), s.instances > 1 && [" on ", name(s.load.instance, 40)]),
    s.forced.slice(0, 3).map((f) => dot("warn", scopeText(f), switchText({ ...f, state: `forced to ${f.state}` }, s.instances))),
    s.forced.length > 3 && dot("warn", h("b", null, `${s.forced.length - 3 + (s.moreForced ?? 0)} more`), " forced"),
    s.switches.slice(0, 3).map((w) => dot(w.state === "off" ? "bad" : "warn", scopeText(w), switchText(w, s.instances))),
    s.switches.length > 3 && dot("bad", h("a", { href: "#/rules" }, h("b", null, `${s.switches.length - 3 + (s.moreSwitches ?? 0)} more`), " switched")),
    h("span", { class: "right" }, paused ? "paused" : "last 60 s · live", h("button", { id: "pause", type: "button", "aria-pressed": String(paused) }, paused ? "Go on" : "Pause")));
}

strip.addEventListener("click", (event) => {
  if (event.target.id !== "pause") return;
  paused = !paused;
  showStrip(latest?.data?.strip, latest?.error);
});

// signIn asks for a token if it is not known who looks.
async function signIn(failure) {
  if (failure?.status !== 401) return;
  end();
  const field = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true });
  const wrong = h("div", { role: "alert" });
  const form = h("form", { class: "card", onsubmit: async (event) => {
    event.preventDefault();
    await post("session", { token: field.value }).then(start, (err) => wrong.replaceChildren(h("p", { class: "err" }, err.message)));
  } }, h("h1", null, "Sign in"), h("label", null, "Token", field), wrong, h("div", { class: "buttons" }, h("button", { class: "go" }, "Sign in")));
  tell(h("span", null, "It is not known who you are."));
  place.replaceChildren(form);
  field.focus();
}

async function start() {
  try {
    me = await get("me");
  } catch (err) {
    if (err.status === 401) return signIn(err);
    tell(dot("bad", err.message ?? "the console does not answer"));
    return void setTimeout(start, 2000);
  }
  show(document.getElementById("app"), document.createTextNode(plain(me.app, 40)));
  show(document.getElementById("who"), me.who ? h("span", null, "signed in as ", name(me.who, 60), ` · ${me.role}`) : h("span", null, me.role === "viewer" ? "looking only" : me.role));
  route();
}

// A screen that is opened by a link begins at its heading, also for those who do not see it.
addEventListener("hashchange", () => {
  if (!me || location.hash === "#main") return;
  route();
  const heading = place.querySelector("h1");
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
});
setInterval(() => document.querySelectorAll("[data-until]").forEach((e) => { e.textContent = leftText(e.dataset.until); }), 1000);
// The frame of the page is painted first, unless nobody sees it.
document.hidden ? start() : requestAnimationFrame(() => setTimeout(start));
