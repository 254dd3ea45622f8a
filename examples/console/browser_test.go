package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// patience is how long a browser may take for a step: it is one of many programs on a busy machine.
const patience = 2 * time.Minute

// chromium is one for all tests. The first one that needs it starts it, TestMain ends it.
var chromium struct {
	sync.Once
	browser context.Context
	err     error
}

// startChromium starts it, without a timeout.
func startChromium() {
	program := ""
	for _, name := range []string{"headless-shell", "google-chrome", "chromium-browser", "chromium"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
		}
	}
	if program == "" {
		return
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(1360, 900))...)
	chromium.browser, _ = chromedp.NewContext(allocator)
	_, chromium.err = chromedp.Run(chromium.browser, chromedp.Evaluate[bool]("true"))
}

// openBrowser starts the shop with its console, and opens a page in Chromium that has nothing in common with those of
// other tests. The test is skipped where there is no Chromium.
func openBrowser(t *testing.T) (page context.Context, address string, s *shop) {
	t.Helper()
	chromium.Do(startChromium)
	if chromium.browser == nil {
		t.Skip("THE CONSOLE IS NOT TESTED: there is no Chromium on the PATH")
	}
	require.NoError(t, chromium.err)
	s, err := openShop(t.Context())
	require.NoError(t, err)
	t.Cleanup(s.close)
	server := httptest.NewServer(s.console())
	t.Cleanup(server.Close)
	page, cancel := chromedp.NewContext(chromium.browser, chromedp.WithNewBrowserContext())
	context.AfterFunc(t.Context(), cancel) // it is closed before servers are, which wait for their connections
	_, err = chromedp.Run(page, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		// Pages of other tests do not take the focus away.
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	require.NoError(t, err)
	page, cancel = context.WithTimeout(page, 3*patience)
	t.Cleanup(cancel)
	return page, server.URL, s
}

// step is something that is done in the page.
type step func(page context.Context) error

func do(page context.Context, t *testing.T, steps ...step) {
	t.Helper()
	for n, s := range steps {
		require.NoError(t, s(page), "step %d", n+1)
	}
}

// script runs statements in the page.
func script(statements string) step {
	return func(page context.Context) error {
		_, err := chromedp.Run(page, chromedp.Evaluate[bool]("(() => {"+statements+"; return true })()"))
		return err
	}
}

// until waits until an expression is true in the page.
func until(expression string) step {
	return func(page context.Context) error {
		for late := time.Now().Add(patience); ; {
			isTrue, err := chromedp.Run(page, chromedp.Evaluate[bool]("Boolean("+expression+")"))
			switch {
			case err != nil || isTrue:
				return err
			case time.Now().After(late):
				text, _ := chromedp.Run(page, chromedp.Evaluate[string](`document.body.innerText`))
				return fmt.Errorf("not true after %v: %s; the page shows %.3000s", patience, expression, text)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func open(address string) step {
	return func(page context.Context) error {
		_, err := chromedp.Run(page, chromedp.Navigate(address))
		return err
	}
}

// visit opens a screen, as a link does.
func visit(hash string) step { return script("location.hash = " + quote(hash)) }

func shows(text string) step {
	return until(`document.getElementById("screen").textContent.includes(` + quote(text) + `)`)
}

func fill(field, value string) step {
	return script(`document.querySelector(` + quote(`input[name="`+field+`"]`) + `).value = ` + quote(value))
}

// press presses the button that says something.
func press(text string) step {
	return script(`[...document.querySelectorAll("button")].find((b) => b.textContent.startsWith(` + quote(text) + `)).click()`)
}

func quote(text string) string { return "`" + strings.ReplaceAll(text, "`", "\\`") + "`" }

// write replaces what the editor has, as somebody does who selects all and types.
func write(text string) step {
	return script(`const content = document.querySelector(".editor").shadowRoot.querySelector(".cm-content");
		content.focus();
		document.execCommand("selectAll");
		document.execCommand("insertText", false, ` + quote(text) + `)`)
}

const editorIsThere = `document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-content")`

// TestRuleIsCorrectedPushedSeenInForceAndRolledBack is what an operator does, in a real browser, over a
// real etcd, with three real instances.
func TestRuleIsCorrectedPushedSeenInForceAndRolledBack(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	ctx, cancel := context.WithCancel(t.Context())
	loaded := make(chan struct{})
	go func() { defer close(loaded); s.load(ctx) }()
	defer func() { cancel(); <-loaded }()

	do(page, t, open(address+"/"), shows("POST:/orders"), shows("create-limit"),
		until(`document.getElementById("strip").textContent.includes("3 of 3 instances")`))

	// Which rule refuses the calls of one user: a click on the resource, the user, and Explain.
	do(page, t, script(`[...document.querySelectorAll("#rows a")].find((a) => a.textContent === "POST:/orders").click()`),
		until(`document.querySelector('input[name="user"]')`), shows("Hottest user"),
		fill("user", "u-48113"),
		press("Explain"),
		until(`/let it pass/.test(document.querySelector("form.card").textContent)`))

	// A mistake is named with its place, and cannot be pushed; then it is mended.
	do(page, t, visit("#/rules?name=payments.yaml"), until(editorIsThere),
		write("flow: [{name: pay-limit, resource: \"pay:charge\", limit: -3}]"), shows("line 1, column"), shows("limit"),
		until(`[...document.querySelectorAll("button")].find((b) => b.textContent === "Push").disabled`),
		write(`flow: [{name: pay-limit, resource: "pay:charge", limit: 3}]`), shows("No mistakes"), shows("What changes"),
		press("Try"), shows("newly refused"), shows("flow pay-limit"),
		fill("message", "less <script>alert(1)</script> payments"),
		script(`document.querySelector('input[name="confirm"]').click()`),
		press("Push"),
		shows("Pushed as revision"), until(`/^3 of 3 instances/.test(document.getElementById("progress").textContent)`))

	// It is in force, and in the history with who and why; and back.
	do(page, t, visit("#/resource?name=pay%3Acharge"), shows("pay-limit"))
	do(page, t, visit("#/history"), shows("less <script>alert(1)</script> payments"),
		script(`[...document.querySelectorAll("td a")].at(-1).click()`), shows("Going back to it changes 1 document"),
		press("Roll back"),
		shows("has the documents of"), visit("#/resource?name=pay%3Acharge"), shows("pay-errors"),
		until(`!document.getElementById("screen").textContent.includes("pay-limit")`))
}

// choose chooses an option, as somebody does with the mouse.
func choose(field, value string) step {
	return script(`const field = document.querySelector(` + quote(`select[name="`+field+`"]`) + `);
		field.value = ` + quote(value) + `;
		field.dispatchEvent(new Event("change"))`)
}

// TestWrongRuleIsSwitchedOffAndReleased is what an operator does at three in the morning.
func TestWrongRuleIsSwitchedOffAndReleased(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	const resource = "POST:/orders"
	user := core.String("user", "u-1") // whose calls per-user refuses after the first twenty
	passing := func(n int) (passed int) {
		for range n {
			for _, i := range s.instances {
				if guard, err := i.engine.Entry(t.Context(), resource, user); err == nil {
					guard.Exit()
					passed++
				}
			}
		}
		return passed
	}
	refuses := func() bool { return passing(200) < 200*instances } // unless the machine takes many seconds for it
	require.Eventually(t, refuses, patience, time.Millisecond)
	order := script(`document.querySelector("select[name=scope]").form.requestSubmit()`)
	do(page, t, open(address+"/#/resource?name=POST%3A%2Forders"), shows("create-limit"), until(`document.querySelector("select[name=scope]").options.length > 4`),
		choose("scope", `{"resource":"POST:/orders"}`), choose("for", "10m"), fill("reason", "wrong <b>limit</b>"), order,
		shows("Switched off on 3 of 3 instances"), shows("It refuses nothing"),
		until(`document.getElementById("strip").textContent.includes("wrong <b>limit</b>")`))
	require.Equal(t, 200*instances, passing(200), "calls pass")

	// Every screen says so; and an instance that does not do it is named.
	for _, screen := range []string{"overview", "rules", "quotas", "fleet", "instances", "lists", "history"} {
		do(page, t, visit("#/"+screen), until(`document.getElementById("strip").textContent.includes("off by you at 127.0.0.1")`))
	}
	do(page, t, visit("#/overview"), shows("rules off"), visit("#/rules"), shows("wrong <b>limit</b>"))
	_ = s.instances[2].server.Close()
	do(page, t, press("Release"), until(`document.querySelector("select[name=state]").value === "release"`), order,
		shows("Released on 2 of 3 instances"), shows("shop-3 did not do it"))
	for _, i := range s.instances[:2] {
		require.Empty(t, i.engine.Status().Switches)
	}
	require.Len(t, s.instances[2].engine.Status().Switches, 1)
	require.Eventually(t, refuses, patience, time.Millisecond)
}

// TestBalanceIsRechargedWhenThatIsConfirmed adds tokens to a balance that each instance has.
func TestBalanceIsRechargedWhenThatIsConfirmed(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	for _, i := range s.instances {
		guard, err := i.engine.Entry(t.Context(), "pay:charge")
		require.NoError(t, err)
		guard.Exit()
	}
	const form = `document.querySelector("input[name=tokens]").form`
	do(page, t, open(address+"/#/quotas"), shows("credit"), until(form+".offsetParent === null"),
		script(`document.querySelector("[data-balance]").click()`), until(focused+`.name === "tokens"`),
		fill("tokens", "1000"), fill("reason", "invoice <b>7</b>"), script(form+".requestSubmit()"),
		shows("1,000 tokens are added to the balance of credit"), press("Do not"), until(form+`.querySelector(".note").hidden`))
	for _, i := range s.instances {
		left, err := i.engine.Recharge(t.Context(), rule.Key{Name: "credit"}, "", 0, core.Order{})
		require.NoError(t, err)
		require.EqualValues(t, 99_999, left, "nothing happens before it is confirmed")
	}
	do(page, t, script(form+".requestSubmit()"), press("Yes"), shows("Done on 3 of 3 instances: 302,997 left"),
		visit("#/history"), shows("1000 tokens were added, 100999 are left: invoice <b>7</b>"))
}

// keys presses keys, as somebody does who has no mouse.
func keys(pressed string) step {
	return func(page context.Context) error {
		_, err := chromedp.Run(page, chromedp.KeyEvent(pressed))
		return err
	}
}

// focused is what has the focus, also within the editor.
const focused = `(document.activeElement?.shadowRoot?.activeElement ?? document.activeElement)`

// tabTo presses Tab until an expression about the element that has the focus, e, is true.
func tabTo(expression string) step {
	return func(page context.Context) error {
		for range 300 {
			if err := keys(kb.Tab)(page); err != nil {
				return err
			}
			there, err := chromedp.Run(page, chromedp.Evaluate[bool](`((e) => Boolean(`+expression+`))(`+focused+`)`))
			if err != nil || there {
				return err
			}
		}
		return fmt.Errorf("no Tab leads to: %s", expression)
	}
}

// TestConsoleIsUsedByTheKeyboard does without a mouse what the other tests do with one.
func TestConsoleIsUsedByTheKeyboard(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	do(page, t, open(address+"/"), shows("POST:/orders"),
		tabTo(`e.textContent === "Skip to the content"`), keys(kb.Enter), until(focused+`.id === "main"`),
		tabTo(`e.textContent === "POST:/orders"`), keys(kb.Enter), shows("create-limit"),
		tabTo(`e.name === "user"`), keys("u-1"), keys(kb.Enter), until(`/let it pass/.test(document.querySelector("form.card").textContent)`),
		// The rule is switched off: the button leads to the form, whose first choices are those of the rule.
		tabTo(`e.dataset.off?.includes("create-limit")`), keys(kb.Enter), until(focused+`.name === "reason"`),
		keys("wrong limit"), keys(kb.Enter), shows("Switched off on 3 of 3 instances"), shows("It refuses nothing"),
		tabTo(`e.dataset.scope?.includes("create-limit")`), keys(kb.Enter), until(focused+`.name === "reason"`),
		keys(kb.Enter), shows("Released on 3 of 3 instances"))
	for _, i := range s.instances {
		require.Empty(t, i.engine.Status().Switches)
	}
	// A document is opened, changed, tried and pushed; Tab leaves the editor.
	do(page, t, tabTo(`e.textContent === "Rules"`), keys(kb.Enter), shows("payments.yaml"),
		tabTo(`e.textContent === "payments.yaml"`), keys(kb.Enter), until(editorIsThere), shows("No mistakes"),
		tabTo(`e.classList.contains("cm-content")`), keys("# ours"), keys(kb.Enter), shows("What changes"),
		tabTo(`e.textContent.startsWith("Try")`), tabTo(`e.name === "message"`), keys("a comment"), keys(kb.Enter), shows("Pushed as revision"))
}

// TestPageConnectsAgainAfterARestart stops the console and starts it again at its address.
func TestPageConnectsAgainAfterARestart(t *testing.T) {
	t.Parallel()
	page, _, s := openBrowser(t)
	address := "127.0.0.1:0"
	start := func() (end func()) {
		var listener net.Listener
		require.Eventually(t, func() (ok bool) { // others may have the port for a moment
			var err error
			listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", address)
			return err == nil
		}, patience, 50*time.Millisecond)
		address = listener.Addr().String()
		server := &http.Server{Handler: s.console(), ReadHeaderTimeout: patience}
		go func() { _ = server.Serve(listener) }()
		return func() { _ = server.Close() }
	}
	end := start()
	const lost = `document.getElementById("strip").textContent.includes("No answer")`
	do(page, t, open("http://"+address+"/"), shows("POST:/orders"), script("window.same = true"))
	end()
	do(page, t, until(lost))
	end = start()
	defer func() { end() }()
	do(page, t, until("!"+lost), until(`document.getElementById("strip").textContent.includes("3 of 3 instances")`),
		until("window.same"), visit("#/rules"), shows("orders.yaml"))

	// What was written meanwhile is checked once it is back.
	do(page, t, visit("#/rules?name=payments.yaml"), until(editorIsThere), shows("No mistakes"))
	end()
	do(page, t, until(lost), write(`flow: [{name: pay-limit, resource: "pay:charge", limit: 3}]`), shows("The console does not answer."))
	end = start()
	do(page, t, shows("No mistakes"), shows("What changes"))
}

// TestKindsCanBeSwitchedThoughTheyComeLate has the console tell kinds when nothing else is shown anew.
func TestKindsCanBeSwitchedThoughTheyComeLate(t *testing.T) {
	page, address, _ := openBrowser(t)
	do(page, t, open(address+"/"), shows("POST:/orders"), script(`const real = fetch, held = new Promise((resume) => { window.tell = resume });
		window.fetch = async (what, how) => {
			if (String(what).startsWith("api/kinds")) await held;
			return real(what, how);
		}`),
		visit("#/rules"), shows("orders.yaml"), until(`document.querySelector("select[name=scope]").options.length === 2`),
		press("Pause"), script(`tell()`), until(`document.querySelector("select[name=scope]").options.length > 4`))
}

// TestPageAsksNobodyElseAndTellsEventsSoon logs how long it takes until the page is painted, and until an event
// is on it: a tenth of a second, and a second and a half at the most, if the machine has nothing else to do. Beside
// it is how long a page takes that has one word. Both are opened from the other one, for which the browser has to
// start a process, and once more in the same tab; ten times, if PENSTOCK_LONG is set.
func TestPageAsksNobodyElseAndTellsEventsSoon(t *testing.T) {
	page, address, s := openBrowser(t)
	word := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!doctype html>one") }))
	defer word.Close()
	var painted, again, word1, word2 []float64
	do(page, t, open(address+"/"), shows("POST:/orders"))
	rounds := 1
	if os.Getenv("PENSTOCK_LONG") != "" {
		rounds = 10
	}
	for range rounds { // in a browser that has its files, as an operator opens it
		word1 = append(word1, firstPaint(page, t, word.URL))
		word2 = append(word2, firstPaint(page, t, word.URL))
		painted = append(painted, firstPaint(page, t, address+"/"))
		do(page, t, shows("POST:/orders"))
		again = append(again, firstPaint(page, t, address+"/"))
		do(page, t, shows("POST:/orders"))
	}
	for what, times := range map[string][]float64{
		"console from another page": painted, "console again": again, "one word from the console": word1, "one word again": word2,
	} {
		slices.Sort(times)
		t.Logf("first paint of %s after %.0f ms (%.0f to %.0f)", what, times[len(times)/2], times[0], times[len(times)-1])
	}
	foreign, err := chromedp.Run(page, chromedp.Evaluate[string](`performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin)).join(" ")`))
	require.NoError(t, err)
	require.Empty(t, foreign, "requests to other places")
	var longest time.Duration
	for n := range 5 {
		time.Sleep(time.Duration(n) * 170 * time.Millisecond) // at any time of a second
		reason := fmt.Sprintf("event %d", n)
		do(page, t, script(`window.seen = 0;
			new MutationObserver(() => { if (!window.seen && document.body.textContent.includes(`+quote(reason)+`)) window.seen = Date.now() })
				.observe(document.body, { childList: true, subtree: true, characterData: true })`))
		began := time.Now()
		require.NoError(t, s.instances[n%instances].engine.Switch(core.Scope{Kind: "flow"}, core.SwitchOff, core.Order{By: "alice", Reason: reason}))
		do(page, t, until("window.seen"))
		at, err := chromedp.Run(page, chromedp.Evaluate[float64]("window.seen"))
		require.NoError(t, err)
		longest = max(longest, time.UnixMilli(int64(at)).Sub(began))
	}
	t.Logf("an event on the page after %v at the most", longest.Round(time.Millisecond))
}

// firstPaint opens a page and returns after how many milliseconds something is painted.
func firstPaint(page context.Context, t *testing.T, address string) float64 {
	t.Helper()
	do(page, t, open(address), until(`performance.getEntriesByName("first-contentful-paint").length`))
	after, err := chromedp.Run(page, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0].startTime`))
	require.NoError(t, err)
	return after
}

// TestEveryScreenIsShownWithoutErrors opens all screens, on a narrow display: people can read and name all of it.
func TestEveryScreenIsShownWithoutErrors(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	s.instances[2].close() // it still reports for a while, and does not answer
	s.instances = s.instances[:2]
	_, err := chromedp.Run(page, chromedp.EmulateViewport(390, 844))
	require.NoError(t, err)
	do(page, t, open(address+"/"), script(`window.failures = [];
		addEventListener("error", (e) => failures.push(e.message));
		addEventListener("unhandledrejection", (e) => failures.push(String(e.reason)));
		addEventListener("securitypolicyviolation", (e) => failures.push(e.violatedDirective))`), script(readable))
	for hash, text := range map[string]string{
		"#/overview": "What refuses", "#/resource?name=POST%3A%2Forders": "create-limit", "#/rules": "orders.yaml", "#/rules?name=orders.yaml": "No mistakes",
		"#/quotas": "charges-of-the-month", "#/fleet": "flow/catalogue", "#/instances": "shop-1", "#/lists": "scrapers", "#/history": "what the shop begins with",
	} {
		do(page, t, visit(hash), shows(text), until(`document.documentElement.scrollWidth <= innerWidth`), until(`failures.length === 0`), until(`unreadable() === ""`))
	}
	for _, hash := range []string{"#/constructor", "#/__proto__", "#/%ZZ"} { // which are no screens
		do(page, t, visit("#/lists"), shows("scrapers"), visit(hash), shows("What refuses"), until(`failures.length === 0`))
	}
	do(page, t, visit("#/lists"), until(`document.querySelector('input[name="list"]')?.value === "scrapers"`),
		fill("value", "192.0.2.7"), press("Look up"), shows("192.0.2.7 is on scrapers"))
}
