package console

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

func TestInstancesThatDoNotSwitchAreNamed(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	client, elsewhere := newRemoteClient(DefaultDial(), askTimeout), newRemoteClient([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, askTimeout)
	defer client.CloseIdleConnections()
	at := func(h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL + "/"
	}
	asked := 0
	counted := at(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	all := []instance{
		{name: "does", base: at(inspect.ControlHandler(engine, inspect.Options{})), client: client},
		{name: "has none", base: at(inspect.Handler(engine, inspect.Options{})), client: client},
		{name: "token", base: at(inspect.ControlHandler(engine, inspect.Options{Tokens: []string{"0123456789abcdef"}})), client: client},
		{name: "moved", base: at(http.RedirectHandler(counted, http.StatusTemporaryRedirect)), client: client},
		{name: "other", base: at(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })), client: client},
		{name: "far", base: counted, client: elsewhere},
		{name: "unknown", problem: "it reports no address"},
	}
	s := switchRequest{All: true, State: core.SwitchOff, For: "10m", Reason: "why & how=1"}
	order, err := s.order("alice <a>")
	require.NoError(t, err)
	done := tell(t.Context(), all, s.form(order))
	assert.Equal(t, 1, done.Done)
	assert.Equal(t, len(all), done.Total)
	why := make(map[string]string)
	for _, f := range done.Failed {
		why[f.Name] = f.Error
	}
	for name, part := range map[string]string{
		"has none": "no inspect.ControlHandler", "token": "401", "moved": "307", "other": "200", "far": "not in the networks", "unknown": "no address",
	} {
		assert.Contains(t, why[name], part, name)
	}
	assert.Zero(t, asked, "no other address is asked")
	require.Len(t, engine.Status().Switches, 1)
	assert.Equal(t, "alice <a> at 127.0.0.1", engine.Status().Switches[0].By)
	assert.Equal(t, "why & how=1", engine.Status().Switches[0].Reason)
}

// roundTripper answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A process that was stopped finds an order when it goes on: it is not said that nothing will happen.
func TestOrdersWithoutAnAnswerMayBeDone(t *testing.T) {
	failing := func(err error) instance {
		return instance{name: "a", base: "http://127.0.0.1/", client: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, err })}}
	}
	for _, c := range []struct {
		of     instance
		unsure bool
		why    string
	}{
		{failing(context.DeadlineExceeded), true, "it does not answer in time: it may be stopped or overloaded"},
		{failing(io.ErrUnexpectedEOF), true, "unexpected EOF"},
		{failing(&net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}), false, "dial tcp: context deadline exceeded"},
		{instance{name: "a", problem: "it reports no address"}, false, "it reports no address"},
	} {
		want := switchDone{Total: 1, Failed: []instanceShown{{"a", "", c.why}}, Unsure: c.unsure}
		assert.Equal(t, want, tell(t.Context(), []instance{c.of}, url.Values{}))
		done := new(handler).rechargeIn(t.Context(), []instance{c.of}, url.Values{})
		assert.Equal(t, rechargeDone{Total: 1, Failed: want.Failed, Unsure: c.unsure}, done)
	}
}

func TestTokenIsSentToControlHandlersOfNamedNetworksOnly(t *testing.T) {
	const token = "0123456789abcdef"
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	client := newRemoteClient(DefaultDial(), askTimeout)
	defer client.CloseIdleConnections()
	var seen []string
	mux := http.NewServeMux()
	mux.Handle("/control", inspect.ControlHandler(engine, inspect.Options{Tokens: []string{token}}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		inspect.Handler(engine, inspect.Options{}).ServeHTTP(w, r)
	})
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(inspect.Failure{Error: "not " + r.Header.Get("Authorization")})
	})
	at := func(h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL + "/"
	}
	form := switchRequest{All: true, State: core.SwitchOff, Reason: "a"}.form(core.Order{By: "alice", Reason: "a"})
	of := instance{base: at(mux), client: client}

	for _, named := range []bool{false, true} {
		o := Options{ControlToken: token, Store: new(store.Store)}
		if named {
			o.Dial = DefaultDial()
		}
		o = o.complete()
		of.token = newInstances(&o).token
		err := of.tell(t.Context(), form)
		_, recorded := of.recording(t.Context(), url.Values{"last": {"1s"}}, 1)
		if named {
			require.NoError(t, err)
			require.ErrorContains(t, recorded, "403")
		} else {
			require.ErrorContains(t, err, "Options.Dial")
			require.ErrorContains(t, recorded, "Options.Dial")
		}
	}
	require.NoError(t, of.ask(t.Context(), "status", nil, new(inspect.Status)))
	assert.Equal(t, []string{"Bearer " + token, ""}, seen, "only what asks for a token gets it")

	of.base = at(echo)
	_, err := of.recording(t.Context(), url.Values{"last": {"1s"}}, 1)
	for _, err := range []error{of.tell(t.Context(), form), err} {
		require.ErrorContains(t, err, "it answers 401: not Bearer …")
		require.NotContains(t, err.Error(), token)
	}
}

func TestSameOrderOfSeveralInstancesIsOneLine(t *testing.T) {
	var s strip
	of := inspect.Forced{Kind: "flow", Rule: "a", State: core.SwitchOff, By: "alice"}
	add := func(of ...inspect.Forced) { s.Switches, s.MoreSwitches = addSwitches(s.Switches, s.MoreSwitches, of) }
	add(of)
	add(of, inspect.Forced{State: core.SwitchOn})
	require.Len(t, s.Switches, 2)
	assert.Equal(t, 2, s.Switches[0].Instances)
	for range 3 {
		var many []inspect.Forced
		for n := range 2 * maxSwitched {
			many = append(many, inspect.Forced{Resource: string(rune('a' + n)), State: core.SwitchOff})
		}
		add(many[maxSwitched:]...)
		add(many[:maxSwitched]...)
	}
	assert.Len(t, s.Switches, maxSwitched)
	assert.Positive(t, s.MoreSwitches)
}
