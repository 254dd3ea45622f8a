package command_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// service is a service with a fault rule and its control handler.
type service struct {
	engine  *core.Engine
	address string
}

func newService(t *testing.T) service { return guardedService(t, inspect.Options{}) }

// guardedService is a service whose control handler has options.
func guardedService(t *testing.T, callers inspect.Options) service {
	t.Helper()
	on := clock.NewVirtual(time.Unix(1_000_000, 0))
	engine := core.New(core.Config{Clock: on, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{{
		Name: "broken", Resource: "pay", Percent: 100, Abort: fault.Abort{HTTP: 503}, Until: on.Now().Add(time.Hour).Time(),
	}}}))
	mux := http.NewServeMux()
	mux.Handle("/debug/control", inspect.ControlHandler(engine, callers))
	mux.Handle("/debug/", inspect.Handler(engine, inspect.Options{}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return service{engine, server.URL + "/debug"}
}

func (s service) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.address, "http://"), "/debug")
}

func (s service) passes(t *testing.T) bool {
	t.Helper()
	guard, err := s.engine.Entry(t.Context(), "pay")
	guard.Exit()
	return err == nil
}

func TestControlSwitchesOffAllRulesOfAKindInAllServices(t *testing.T) {
	one, two := newService(t), newService(t)
	got := user{}.run(t, "control", "fault", "off", "--all", "--engine", one.address, "--engine", two.address)
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, one.host()+": all rules of kind fault are forced to be off\n"+
		two.host()+": all rules of kind fault are forced to be off\n", got.out)
	assert.True(t, one.passes(t))
	assert.True(t, two.passes(t))

	got = user{}.run(t, "status", "--engine", one.address)
	assert.Contains(t, got.out, "all rules of kind fault are forced to be off\n")

	got = user{}.run(t, "control", "fault", "release", "--all", "--engine", one.address)
	assert.Equal(t, one.host()+": all rules of kind fault are released\n", got.out)
	assert.False(t, one.passes(t))
	assert.True(t, two.passes(t))
}

func TestControlForcesOneRule(t *testing.T) {
	s := newService(t)
	got := user{}.run(t, "control", "fault", "off", "--rule", "broken", "--engine", s.address)
	assert.Equal(t, s.host()+": fault rule \"broken\" is forced to be off\n", got.out)
	assert.True(t, s.passes(t))
	got = user{}.run(t, "control", "fault", "release", "--rule", "broken", "--engine", s.address)
	assert.Equal(t, s.host()+": fault rule \"broken\" is released\n", got.out)
	assert.False(t, s.passes(t))
}

func TestControlSendsTheTokenOfAFile(t *testing.T) {
	s := guardedService(t, inspect.Options{Tokens: []string{"secret"}})
	file := filepath.Join(t.TempDir(), "token")
	for token, want := range map[string]struct {
		code   int
		stderr string
	}{
		"secret\n": {command.ExitDone, ""},
		"wrong":    {command.ExitFailed, "the request needs the token of this handler"},
		"\n":       {command.ExitUsage, "is empty: write the token into it"},
	} {
		require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
		got := user{}.run(t, "control", "fault", "off", "--all", "--engine", s.address, "--token-file", file)
		assert.Equal(t, want.code, got.code, got.err)
		assert.Contains(t, got.err, want.stderr)
	}
	got := user{}.run(t, "control", "fault", "off", "--all", "--engine", s.address)
	assert.Contains(t, got.err, "the request needs the token of this handler")
	got = user{}.run(t, "control", "fault", "off", "--all", "--engine", s.address, "--token-file", file+"x")
	assert.Equal(t, command.ExitUsage, got.code)
	assert.Contains(t, got.err, "--token-file")
}

func TestControlReportsEachServiceByItself(t *testing.T) {
	s := newService(t)
	args := []string{"control", "fault", "off", "--all", "--engine", "127.0.0.1:1", "--engine", s.address}
	got := user{}.run(t, args...)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "penstock: 127.0.0.1:1: dial tcp")
	assert.Equal(t, s.host()+": all rules of kind fault are forced to be off\n", got.out)
	assert.True(t, s.passes(t), "the others are asked all the same")

	got = user{}.run(t, append(args, "--output", "json")...)
	assert.Equal(t, command.ExitFailed, got.code)
	var results []struct{ Engine, Error string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &results))
	require.Len(t, results, 2)
	assert.Contains(t, results[0].Error, "does the service run, and listen there?")
	assert.Equal(t, s.host(), results[1].Engine)
	assert.Empty(t, results[1].Error)
}

// What a service says may come from anybody: it does nothing to the terminal.
func TestControlPrintsWhatServicesSayAsText(t *testing.T) {
	hostile := "\x1b]0;pwned\a\x1b[2J\u202e\nall rules are switched off"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": hostile})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"states": []any{map[string]string{"value": hostile, "resource": hostile}}})
	}))
	t.Cleanup(server.Close)
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": hostile})
	}))
	t.Cleanup(failing.Close)
	for _, args := range [][]string{
		{"control", "fault", "off", "--all", "--engine", server.URL},
		{"control", "hotParam", "show", "--rule", "r", "--attr", "user=a", "--engine", server.URL},
		{"quota", "add", "5", "--rule", "r", "--engine", server.URL},
		{"explain", "r", "--engine", failing.URL},
		{"status", "--engine", failing.URL},
		{"quota", "--engine", failing.URL},
		{"top", "--once", "--engine", failing.URL},
		{"record", "--for", "1ms", "-o", filepath.Join(t.TempDir(), "x"), "--engine", failing.URL},
	} {
		got := user{}.run(t, args...)
		text := got.out + got.err
		assert.Contains(t, text, "pwned", args)
		assert.NotContains(t, text, "\x1b", args)
		assert.NotContains(t, text, "\u202e", args)
		assert.NotContains(t, text, "\nall rules", args)
	}
}

func TestControlErrors(t *testing.T) {
	s := newService(t)
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"fault"}, command.ExitUsage, "which rules, and what state?"},
		{[]string{"fault", "off", "x"}, command.ExitUsage, `unexpected argument "x"`},
		{[]string{"fault", "off", "--all"}, command.ExitUsage, "--engine is missing"},
		{[]string{"fault", "off", "--engine", s.address}, command.ExitUsage, "which rules? Name one with --rule, or say --all for all rules of the kind fault"},
		{[]string{"fault", "off", "--engine", s.address, "--rule", ""}, command.ExitUsage, "which rules?"},
		{[]string{"fault", "off", "--engine", s.address, "--rule", "broken", "--all"}, command.ExitUsage, "contradict each other"},
		{[]string{"fault", "", "--engine", s.address, "--all"}, command.ExitUsage, "the state is empty"},
		{[]string{"fault", "off", "--all", "--engine", s.address, "--engine", "http://"}, command.ExitUsage, "must be HOST:PORT or a URL"},
		{[]string{"fault", "open", "--all", "--engine", s.address}, command.ExitNo, `cannot be forced to be "open"`},
		{[]string{"fault", "off", "--rule", "nobody", "--engine", s.address}, command.ExitNo, `no such rule is in force: fault "nobody"`},
		{[]string{"fault", "off", "--all", "--engine", s.address + "/status"}, command.ExitFailed, "does it serve the control handler"},
	} {
		stdout, stderr, code := execute(t, "", append([]string{"control"}, c.args...)...)
		assert.Equal(t, c.code, code, c.args)
		assert.Empty(t, stdout, c.args)
		assert.Contains(t, stderr, c.stderr, c.args)
		assert.False(t, s.passes(t), c.args)
	}
}
