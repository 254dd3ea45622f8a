package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// TestOperatorsWhoSwitchARuleAtOnceLeaveAllInstancesAlike has two of them do the opposite, each at a console of their own.
func TestOperatorsWhoSwitchARuleAtOnceLeaveAllInstancesAlike(t *testing.T) {
	t.Parallel()
	s, err := openShop(t.Context())
	require.NoError(t, err)
	t.Cleanup(s.close)
	consoles := map[string]*httptest.Server{core.SwitchOff: httptest.NewServer(s.console()), core.SwitchOn: httptest.NewServer(s.console())}
	for _, server := range consoles {
		t.Cleanup(server.Close)
	}
	order := func(state string) {
		body := fmt.Sprintf(`{"kind":"flow","rule":"create-limit","state":%q,"reason":"wrong"}`, state)
		answer, err := http.Post(consoles[state].URL+"/api/switch", "application/json", strings.NewReader(body))
		if assert.NoError(t, err) {
			assert.Equal(t, http.StatusOK, answer.StatusCode)
			assert.NoError(t, answer.Body.Close())
		}
	}
	for round := range 30 {
		var orders sync.WaitGroup
		orders.Go(func() { order(core.SwitchOff) })
		orders.Go(func() { order(core.SwitchOn) })
		orders.Wait()
		state := s.instances[0].engine.Status().Switches[0].State
		for _, i := range s.instances {
			require.Equal(t, state, i.engine.Status().Switches[0].State, "round %d", round)
		}
	}
}

// TestClockOfTheBrowserMayBeWrong opens the page where it is an hour ahead.
func TestClockOfTheBrowserMayBeWrong(t *testing.T) {
	t.Parallel()
	tab, address, s := openBrowser(t)
	ahead := page.AddScriptToEvaluateOnNewDocumentParams{Source: `const now = Date.now; Date.now = () => now() + 3600e3`}
	_, err := chromedp.Run(tab, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, ahead)
		return err
	}))
	require.NoError(t, err)
	require.NoError(t, s.instances[0].engine.Switch(core.Scope{Kind: "flow"}, core.SwitchOff, core.Order{By: "alice", Reason: "wrong", For: 30 * time.Minute}))
	do(tab, t, open(address+"/"), until(`/(29|30) min left/.test(document.getElementById("strip").textContent)`))
}
