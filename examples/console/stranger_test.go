package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// push replaces all documents behind the back of the page.
func (s *shop) push(t *testing.T, documents ...store.Document) {
	t.Helper()
	now, err := s.store.Pull(t.Context())
	require.NoError(t, err)
	_, err = s.store.Push(t.Context(), store.Push{Documents: documents, Expect: now.Revision, Author: "bob", Message: "less"})
	require.NoError(t, err)
}

// TestHeldBackRemovalIsConfirmed pushes documents that most rules are gone from, and puts that in force.
func TestHeldBackRemovalIsConfirmed(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	s.push(t, documents()[1])
	do(page, t, open(address+"/#/instances"), shows("Held back"),
		until(`document.getElementById("strip").textContent.includes("3 instances holding a removal back")`))
	for _, i := range s.instances {
		require.Greater(t, i.engine.Status().Rules, 1, "it is not in force before somebody confirms it")
	}
	do(page, t, press("Put it in force"), shows("Confirmed at revision"))
	for _, i := range s.instances {
		require.Eventually(t, func() bool { return i.engine.Status().Rules == 1 }, patience, 10*time.Millisecond)
	}
	do(page, t, until(`!document.getElementById("strip").textContent.includes("holding")`))
}

// TestRuleThatRefusesAUserIsFoundWithThreeClicks from the first page: on the resource, the user and Explain.
func TestRuleThatRefusesAUserIsFoundWithThreeClicks(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	all := documents()
	all[0].Data = []byte(strings.Replace(string(all[0].Data), "burst: 20", "burst: 20, values: {u-1: 0}", 1))
	s.push(t, all...)
	for _, i := range s.instances {
		require.Eventually(t, func() bool {
			guard, err := i.engine.Entry(t.Context(), "POST:/orders", core.String("user", "u-1"))
			guard.Exit()
			return err != nil && strings.Contains(err.Error(), "per-user")
		}, patience, 10*time.Millisecond)
	}
	do(page, t, open(address+"/"), shows("POST:/orders"), script(`window.clicks = 0; addEventListener("click", () => clicks++, true)`),
		script(`[...document.querySelectorAll("#rows a")].find((a) => a.textContent === "POST:/orders").click()`),
		until(`document.querySelector('input[name="user"]')`), script(`document.querySelector('input[name="user"]').click()`),
		fill("user", "u-1"), press("Explain"),
		until(`/^per-user .* refuses it now/.test(document.querySelector("form.card p.err")?.textContent)`))
	clicks, err := chromedp.Run(page, chromedp.Evaluate[int]("window.clicks"))
	require.NoError(t, err)
	require.LessOrEqual(t, clicks, 3)
}

// TestViewerFindsNothingToActWith opens all screens as somebody who may only look.
func TestViewerFindsNothingToActWith(t *testing.T) {
	t.Parallel()
	page, _, s := openBrowser(t)
	server := httptest.NewServer(console.Handler(console.Options{Store: s.store}))
	t.Cleanup(server.Close)
	require.NoError(t, s.instances[0].engine.Switch(core.Scope{Kind: "flow"}, core.SwitchOff, core.Order{By: "alice", Reason: "wrong"}))
	s.push(t, documents()[1]) // the instances hold it back
	for hash, text := range map[string]string{
		"#/overview": "What refuses", "#/resource?name=POST%3A%2Forders": "create-limit", "#/rules": "payments.yaml", "#/rules?name=payments.yaml": "No mistakes",
		"#/quotas": "credit", "#/instances": "shop-1", "#/history?revision=4": "Going back to it changes",
	} {
		do(page, t, open(server.URL+"/"+hash), shows(text),
			until(`document.querySelectorAll("[data-off], [data-balance], [data-scope], select[name=scope], input[name=reason], input[name=message], button.go").length === 0`),
			until(`![...document.querySelectorAll("button")].some((b) => /Put it|Try|Release|Roll/.test(b.textContent))`))
	}
}

// hostile is a text that would do something if it were not shown as one.
const hostile = "\"'><img src=x onerror=pwned=1><script>pwned=1</script>\u202e{{1}}&lt;"

// TestHostileTextsAreShownAsTexts has names of resources, rules, users, documents, instances and reasons that are not
// what they should be, and reports in etcd that nobody has made who is honest.
func TestHostileTextsAreShownAsTexts(t *testing.T) {
	t.Parallel()
	page, address, s := openBrowser(t)
	asked := make(chan string, 100)
	outside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() }))
	t.Cleanup(outside.Close)
	first := s.instances[0].engine
	for _, name := range []string{hostile, strings.Repeat("x", 5000), "POST:/orders"} {
		for range 30 {
			if guard, err := first.Entry(t.Context(), name, core.String("user", hostile)); err == nil {
				guard.Exit()
			}
		}
	}
	require.NoError(t, first.Switch(core.Scope{Kind: "flow"}, core.SwitchOff, core.Order{By: hostile, Reason: hostile, For: time.Hour}))
	port := strings.TrimPrefix(outside.URL, "http://127.0.0.1")
	for n, report := range []etcd.Report{
		{Instance: hostile, Inspect: "169.254.169.254:80", Version: hostile, Host: hostile},
		{Instance: "path", Inspect: "127.0.0.1" + port + "/admin?x="},
		{Instance: "user", Inspect: "someone@127.0.0.1" + port},
		{Instance: strings.Repeat("y", 1<<20), Inspect: "127.0.0.1:1", Revision: -1 << 63, Rules: -5},
		{Instance: "huge", Inspect: "[::ffff:169.254.169.254]:80", Revision: 1<<63 - 1, Rules: 1<<62 + 1, PID: -1},
	} {
		text, err := json.Marshal(report)
		require.NoError(t, err)
		key := fmt.Sprintf("%s.instances/%d", strings.TrimSuffix(prefix, "/"), n)
		_, err = s.etcd.Client().Put(t.Context(), key, string(text))
		require.NoError(t, err)
	}
	_, err := chromedp.Run(page, chromedp.EmulateViewport(390, 844))
	require.NoError(t, err)
	do(page, t, open(address+"/"), script(`window.failures = [];
		addEventListener("error", (e) => failures.push(e.message));
		addEventListener("unhandledrejection", (e) => failures.push(String(e.reason)));
		addEventListener("securitypolicyviolation", (e) => failures.push(e.violatedDirective))`))
	for hash, text := range map[string]string{
		"#/overview": "onerror=pwned", "#/resource?name=" + url.QueryEscape(hostile): "onerror=pwned", "#/resource?name=POST%3A%2Forders": "onerror=pwned",
		"#/rules?name=" + url.QueryEscape(hostile): "onerror=pwned", "#/quotas?of=" + url.QueryEscape("user="+hostile): "per-user", "#/fleet": "flow/catalogue",
		"#/instances": "shop-1", "#/lists": "scrapers", "#/history": "onerror=pwned",
	} {
		do(page, t, visit(hash), shows(text), until(`document.getElementById("strip").textContent.includes("onerror=pwned")`),
			until(`document.documentElement.scrollWidth <= innerWidth`), until(`failures.length === 0 && !window.pwned`),
			until(`document.querySelectorAll("#screen img, #screen script, #strip img").length === 0`))
	}
	require.Empty(t, asked, "only addresses without anything else are asked")
}
