// The lists that rules name: which version each instance goes by, and whether something is on one.
import { clock, count, h, name, none, number, plain, show, table, tag } from "./dom.js";
import { get } from "./api.js";

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
    show(body, all.length ? table(["list", h("th", { class: "num" }, "entries"), "digest", "in force since", "instances", ""], all.flatMap(rows)) : none("No rule names a list, and none is there."));
  } };
}

const rows = (l) => (l.versions.length ? l.versions.map((v) => h("tr", null, h("td", { class: "name" }, name(l.name, 80), v.source ? h("div", { class: "dim" }, name(v.source, 60)) : ""),
  h("td", { class: "num n" }, number(v.entries)), h("td", { class: "n" }, plain(v.digest.slice(0, 12))), h("td", null, v.since ? clock(v.since) : "—"), h("td", null, v.instances.length > 3 ? count(v.instances.length, "instance") : v.instances.map((i) => h("div", null, name(i, 40)))),
  h("td", { class: "wrap" }, !v.inForce && tag("not in force", "wait"), v.copiedAt && tag("from a copy", "wait"), v.heldBack && h("p", { class: "err" }, plain(v.heldBack, 300)), v.error && h("p", { class: "err" }, plain(v.error, 300)))))
  : [h("tr", null, h("td", { class: "name" }, name(l.name, 80)), h("td", { colspan: 5 }, tag(`missing on ${count(l.missing, "instance")}`, "refuse")))]);
