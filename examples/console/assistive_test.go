package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// allScreens are all screens, and a text that each of them shows.
var allScreens = map[string]string{
	"#/overview": "What refuses", "#/resource?name=POST%3A%2Forders": "create-limit", "#/rules": "orders.yaml", "#/rules?name=orders.yaml": "No mistakes",
	"#/quotas": "charges-of-the-month", "#/fleet": "flow/catalogue", "#/instances": "shop-1", "#/lists": "scrapers", "#/history": "what the shop begins with",
}

// media has the page be shown as somebody's system asks for.
func media(features ...*emulation.MediaFeature) step {
	return func(page context.Context) error {
		_, err := chromedp.Run(page, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
			return err
		}))
		return err
	}
}

// tree is what the browser tells a screen reader of the page.
func tree(page context.Context, t *testing.T) []*accessibility.Node {
	t.Helper()
	var found accessibility.GetFullAXTreeResult
	_, err := chromedp.Run(page, chromedp.Func(func(ctx context.Context, t *chromedp.Target) (err error) {
		found, err = cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		return err
	}))
	require.NoError(t, err)
	return slices.DeleteFunc(found.Nodes, func(n *accessibility.Node) bool { return n.Ignored })
}

func textOf(v *accessibility.Value) (text string) {
	if v != nil {
		_ = json.Unmarshal(v.Value, &text)
	}
	return text
}

// named are the roles of what a screen reader tells by a name, and what people jump to.
var named = []string{
	"button", "checkbox", "combobox", "heading", "image", "link", "navigation", "columnheader", "region", "search", "searchbox", "spinbutton", "textbox",
}

// unheard returns what a screen reader could not tell of: what has a role, but no name; tables without heads; and a
// page without its one heading and its landmarks.
func unheard(nodes []*accessibility.Node) (found []string) {
	roles := map[string]int{}
	for _, n := range nodes {
		role, name := textOf(n.Role), strings.TrimSpace(textOf(n.Name))
		roles[role]++
		if name == "" && slices.Contains(named, role) {
			found = append(found, role+" without a name")
		}
		for _, p := range n.Properties {
			if role == "heading" && p.Name == "level" && string(p.Value.Value) == "1" {
				roles["h1"]++
			}
		}
	}
	if roles["table"] > 0 && roles["columnheader"] < roles["table"] {
		found = append(found, "a table without heads")
	}
	for _, role := range []string{"h1", "main", "navigation"} {
		if roles[role] != 1 {
			found = append(found, fmt.Sprintf("%d of %s", roles[role], role))
		}
	}
	return found
}

// TestAllOfEveryScreenIsToldToAScreenReader reads what the browser tells one.
func TestAllOfEveryScreenIsToldToAScreenReader(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	require.NoError(t, s.instances[0].engine.Switch(core.Scope{Kind: "flow"}, core.SwitchOff, core.Order{By: "alice", Reason: "wrong", For: time.Hour}))
	do(page, t, open(address+"/"))
	for hash, text := range allScreens {
		do(page, t, visit(hash), shows(text))
		require.Empty(t, unheard(tree(page, t)), hash)
	}
}

// TestScreenReaderIsNotInterruptedAllTheTime counts what is announced while nothing happens but what happens each second.
func TestScreenReaderIsNotInterruptedAllTheTime(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	if guard, err := s.instances[0].engine.Entry(t.Context(), "POST:/orders"); err == nil {
		guard.Exit() // it moves on in the minute that is shown
	}
	order := core.Order{By: "alice", Reason: "wrong", For: time.Hour}
	do(page, t, open(address+"/"), shows("POST:/orders"), script(`window.announced = [];
		new MutationObserver((changes) => {
			for (const { target } of changes) {
				const region = (target.nodeType === Node.TEXT_NODE ? target.parentElement : target)?.closest("[role=status], [role=alert], [aria-live]");
				if (region) announced.push(region.textContent);
			}
		}).observe(document.body, { childList: true, subtree: true, characterData: true })`))
	require.NoError(t, s.instances[0].engine.Switch(core.Scope{Kind: "isolation"}, core.SwitchOff, order))
	const said = `announced.some((text) => text.includes("isolation"))`
	do(page, t, until(said), script("announced.length = 0"))
	const updates = 6 // of what the page shows
	do(page, t, script(`window.updates = 0; new MutationObserver(() => updates++).observe(document.querySelector("#screen .tiles"), { attributes: true, subtree: true })`),
		until(fmt.Sprintf("updates >= %d", updates)))
	found, err := chromedp.Run(page, chromedp.Evaluate[string](`announced.join(" | ")`))
	require.NoError(t, err)
	require.Empty(t, found, "announced while nothing happens")
	require.NoError(t, s.instances[0].engine.Switch(core.Scope{Kind: "isolation"}, "", order))
	do(page, t, until(`announced.length > 0`))
}

// TestFocusStaysWhereItIs has rows change their places under the focus, and buttons be disabled while they work.
func TestFocusStaysWhereItIs(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	link := func(name string) string {
		return `[...document.querySelectorAll("#rows a")].find((a) => a.textContent === ` + quote(name) + `)`
	}
	first := func(name string) step {
		return until(`document.querySelector("#rows td a")?.textContent === ` + quote(name))
	}
	hold := func(resource string, n int) {
		for range n {
			guard, err := s.instances[0].engine.Entry(t.Context(), resource)
			require.NoError(t, err)
			t.Cleanup(func() { guard.Exit() })
		}
	}
	hold("more", 2)
	hold("fewer", 1)
	do(page, t, open(address+"/#/overview?sort=inFlight"), first("more"), script(link("fewer")+`.focus()`))
	hold("fewer", 2)
	do(page, t, first("fewer"), until(focused+`.textContent === "fewer"`))
	// A screen that is opened begins at its heading.
	do(page, t, keys("\r"), shows("known to"), until(focused+`.tagName === "H1"`), until(focused+`.textContent === "fewer"`))
	do(page, t, visit("#/lists"), until(`document.querySelector('input[name="list"]')?.value === "scrapers"`))
	do(page, t, visit("#/resource?name=POST%3A%2Forders"), shows("create-limit"), until(`document.querySelector("select[name=scope]").options.length > 4`),
		choose("scope", `{"resource":"POST:/orders"}`), fill("reason", "wrong"), tabTo(`e.textContent === "Switch"`), keys("\r"),
		shows("Switched off on 3 of 3 instances"), until(focused+`.textContent === "Switch"`))
}

// TestPageIsAsItsReaderNeedsIt shows all screens dark, at 200 %, on a narrow window, and without motion.
func TestPageIsAsItsReaderNeedsIt(t *testing.T) {
	t.Parallel()
	page, address, _ := openBrowser(t)
	for name, test := range map[string]struct {
		width, height int64
		steps         []step
	}{
		"dark":        {1360, 900, []step{media(&emulation.MediaFeature{Name: "prefers-color-scheme", Value: "dark"})}},
		"200 percent": {680, 450, []step{media()}},
		"360 wide":    {360, 740, []step{media(&emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})}},
	} {
		_, err := chromedp.Run(page, chromedp.EmulateViewport(test.width, test.height))
		require.NoError(t, err)
		do(page, t, test.steps...)
		do(page, t, open(address+"/"), script(readable))
		for hash, text := range allScreens {
			t.Log(name, hash)
			do(page, t, visit(hash), shows(text), until(`document.documentElement.scrollWidth <= innerWidth`), until(`unreadable() === ""`))
		}
	}
	do(page, t, until(`document.getAnimations().length === 0 && [...document.querySelectorAll("*")].every((e) => getComputedStyle(e).transitionDuration === "0s" && getComputedStyle(e).animationName === "none")`))
}
