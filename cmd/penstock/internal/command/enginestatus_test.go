package command_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// serving returns the address of a service that answers one path.
func serving(t *testing.T, path string, answer any) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(answer) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func seen() inspect.Status {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	return inspect.Status{
		Time: at, Revision: 7, AppliedAt: at, Rules: 12, Unmatched: 2, UnmatchedRules: []string{`gate "a"`, `gate "b"`},
		Sources: []inspect.Source{{
			Name: "etcd:/penstock/shop/", Ready: true, Connected: true, Revision: 57, Documents: []inspect.Document{{Name: "a.yaml"}},
		}},
		Lists: []inspect.List{
			{Name: "own", InForce: true, Entries: 3},
			{
				Name: "scrapers", Source: "file:/etc/lists", Document: "scrapers.txt", InForce: true, Entries: 1_048_576,
				Digest: "abcdef0123456789", Since: at,
			},
		},
		Signals: []inspect.Signal{
			{Signal: "cpu", Value: new(0.8125), At: at, Rules: []string{`adaptive "shed"`, `adaptive "system"`}},
			{Signal: "memory", At: at, Error: "open /sys/fs/cgroup/memory.max: permission denied", Rules: []string{`flow "cache"`}},
			{Signal: "load", Value: new(0.0), At: at, Rules: []string{`adaptive "system"`}},
		},
		Limiters: []inspect.Limiter{
			{Resource: "*", Kind: "adaptive", Rule: "shed", State: "limited", Notes: []inspect.Note{
				{Since: at, Text: "limited to 10 calls, as clients gave up: 9 of 12 calls failed after a long time"},
				{Since: at.Add(-time.Second), Text: `"reports" went apart, slow while` + "\x1b[31m others are not"},
			}, Gauges: []inspect.Gauge{
				{Name: "limit", Value: 9.6},
				{Name: "in_flight", Value: 9},
				{Name: "queued", Value: 3},
				{Name: "shed", Label: "priority", LabelValue: "high"},
				{Name: "shed", Value: 12, Label: "priority", LabelValue: "low"},
				{Name: "shed", Value: 345, Label: "priority", LabelValue: "sheddable"},
			}},
			{Resource: "jobs", Kind: "adaptive", Rule: "jobs", Gauges: []inspect.Gauge{
				{Name: "shed", Label: "priority", LabelValue: "low"}, {Name: "level", Value: 1},
			}},
			{Resource: "pay", Kind: "gate", Rule: "pay", State: "open", Gauges: []inspect.Gauge{{Name: "open_seconds", Value: 4.25}}},
			{
				Resource: "orders:create", Kind: "ration", Rule: "per-user", Gauges: []inspect.Gauge{{Name: "values", Value: 1234}},
				Values: []inspect.Value{{Value: "alice", Passed: 1024, Refused: 70_000}, {Value: "b\x1b[31mob\tx", Passed: 3}, {}},
			},
			{Resource: "orders:*", Kind: "ration", Rule: "tried", Shadow: true, Values: []inspect.Value{{Value: "acme/7", Passed: 1}}},
		},
		MoreLimiters: 1, MoreValues: 20,
	}
}

func TestStatusOfARunningService(t *testing.T) {
	got := user{}.run(t, "status", "--engine", serving(t, "/debug/penstock/status", seen())+"/debug/penstock/")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	golden(t, "enginestatus.txt", got.out, "")

	got = user{}.run(t, "status", "--output", "json", "--engine", serving(t, "/status", seen()))
	assert.Equal(t, command.ExitDone, got.code, got.err)
	var status inspect.Status
	require.NoError(t, json.Unmarshal([]byte(got.out), &status))
	assert.Equal(t, seen(), status)

	empty := user{}.run(t, "status", "--engine", serving(t, "/status", inspect.Status{}))
	assert.Equal(t, "0 rules, of revision 0\n", empty.out)
}

func TestStatusOfOneRuleOfARunningService(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/limiters", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "rule=per-user", r.URL.RawQuery)
		_ = json.NewEncoder(w).Encode(inspect.Limiters{Limiters: seen().Limiters[3:4]})
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	got := user{}.run(t, "status", "--engine", server.URL, "--rule", "per-user")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, `ration rule "per-user" on orders:create: values 1234`)
	assert.Contains(t, got.out, "  alice")
}

func TestStatusOfAServiceThatIsNotInOrderExitsWithOne(t *testing.T) {
	for want, change := range map[string]func(*inspect.Status){
		"held back: 9 of 10 rules":      func(s *inspect.Status) { s.Sources[0].HeldBack = "9 of 10 rules" },
		"not connected: no route":       func(s *inspect.Status) { s.Sources[0].Connected, s.Sources[0].Error = false, "no route" },
		"not connected: not read yet":   func(s *inspect.Status) { s.Sources[0].Connected = false },
		"on a copy of 2024-05-01 12:00": func(s *inspect.Status) { s.Sources[0].CopiedAt = s.Time },
		"1 document rejected":           func(s *inspect.Status) { s.Sources[0].Documents[0].Rejected = "line 3\nline 4" },
		"\na.yaml of etcd:/penstock/shop/ is rejected:\n  line 3\n  line 4\n":                                          func(s *inspect.Status) { s.Sources[0].Documents[0].Rejected = "line 3\nline 4" },
		"in force, present version rejected\n\nlist scrapers of file:/etc/lists scrapers.txt is rejected:\n  line 9\n": func(s *inspect.Status) { s.Lists[1].Error = "line 9" },
		"not in force, present version rejected\n":                                                                     func(s *inspect.Status) { s.Lists[1].InForce, s.Lists[1].Error = false, "line 9" },
	} {
		status := seen()
		change(&status)
		got := user{}.run(t, "status", "--engine", serving(t, "/status", status))
		assert.Equal(t, command.ExitNo, got.code, want)
		assert.Contains(t, got.out, want)
		assert.Empty(t, got.err)
	}
}

func TestStatusOfSeveralServicesShowsAllOfThem(t *testing.T) {
	fine, held := seen(), seen()
	held.Sources[0].HeldBack = "9 of 10 rules"
	a, b := serving(t, "/status", fine), serving(t, "/status", held)
	got := user{}.run(t, "status", "--engine", a, "--engine", a)
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, 2, strings.Count(got.out, "12 rules, of revision 7"), got.out)

	got = user{}.run(t, "status", "--engine", a, "--engine", b, "--engine", "127.0.0.1:1")
	assert.Equal(t, command.ExitFailed, got.code, "the highest of all")
	first, second := strings.Index(got.out, strings.TrimPrefix(a, "http://")+":\n"), strings.Index(got.out, strings.TrimPrefix(b, "http://")+":\n")
	assert.True(t, first == 0 && second > first, got.out)
	assert.Equal(t, 1, strings.Count(got.out, "held back: 9 of 10 rules"))
	assert.Contains(t, got.out, "\n127.0.0.1:1:\nasking the engine at 127.0.0.1:1: dial tcp")

	got = user{}.run(t, "status", "--engine", a, "--engine", b, "--output", "json")
	assert.Equal(t, command.ExitNo, got.code)
	var list []struct {
		Engine string
		Status inspect.Status
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &list))
	require.Len(t, list, 2)
	assert.Equal(t, fine, list[0].Status)
	assert.Equal(t, held, list[1].Status)

	got = user{}.run(t, "status", "--engine", b, "--engine", a, "--rule", "per-user")
	assert.Equal(t, command.ExitFailed, got.code, "they do not serve that")
}

func TestStatusOfAServiceErrors(t *testing.T) {
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"status", "--rule", "a"}, command.ExitUsage, "Name the application"},
		{[]string{"status", "--engine", "x", "--wait"}, command.ExitUsage, "--engine and --wait are two places to look at: leave one out"},
		{[]string{"status", "--engine", "x", "--app", "shop"}, command.ExitUsage, "--engine and --app are two places"},
		{[]string{"status", "--engine", "http://"}, command.ExitUsage, "must be HOST:PORT or a URL"},
		{[]string{"status", "--engine", "127.0.0.1:1", "--engine", "http://"}, command.ExitUsage, "must be HOST:PORT or a URL"},
		{[]string{"status", "--engine", "127.0.0.1:1"}, command.ExitFailed, "asking the engine at 127.0.0.1:1: dial tcp"},
		{[]string{"status", "--engine", serving(t, "/other", 1)}, command.ExitFailed, "does it serve the handler of the package inspect"},
	} {
		stdout, stderr, code := execute(t, "", c.args...)
		assert.Equal(t, c.code, code, c.args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, c.stderr)
	}
}

func TestExplainShowsWhatRulesFindInAttributes(t *testing.T) {
	answer := inspect.Explanation{Call: inspect.Call{Resource: "orders"}}
	for _, r := range []inspect.Rule{
		{
			Attributes: []inspect.Attribute{{Key: "user", Type: "text", Value: "alice"}},
			State:      &inspect.State{CannotPass: true, Values: []inspect.Value{{Value: "alice", Passed: 5, Refused: 12}}},
		},
		{
			Attributes: []inspect.Attribute{{Key: "tenant", Type: "number", Value: "7"}, {Key: "user", Type: "text", Value: "alice"}},
			State:      &inspect.State{RetryAfter: 1.5, Gauges: []inspect.Gauge{{Name: "max_values", Value: 100}}},
		},
		{Attributes: []inspect.Attribute{{Key: "ip"}, {Key: "id", Type: "text", Value: "7"}}, State: &inspect.State{}},
	} {
		r.Kind, r.Name, r.Fields = "ration", "each", []inspect.Field{{Name: "resource", Value: "orders"}}
		answer.Rules = append(answer.Rules, r)
	}
	got := user{}.run(t, "explain", "orders", "--attr", "user=alice", "--engine", serving(t, "/explain", answer))
	assert.Equal(t, command.ExitDone, got.code, got.err)
	golden(t, "explain_attributes.txt", got.out, "")
}

// The hottest users of a running service, from its engine to the terminal.
func TestStatusAndExplainShowTheHottestUsersOfAnEngine(t *testing.T) {
	now := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	engine := core.New(core.Config{Clock: now, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	set, err := rules.Parse("code", []byte("hotParam: [{name: per-user, resource: orders, param: user, limit: 2}]"))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	for _, user := range []string{"alice", "alice", "alice", "bob"} {
		if guard, err := engine.Entry(t.Context(), "orders", core.String("user", user)); err == nil {
			guard.Exit()
		}
	}
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	defer server.Close()
	const table = "VALUE  PASSED  REFUSED\n  alice  2       1\n  bob    1       0\n"
	for _, args := range [][]string{{"status"}, {"status", "--rule", "per-user"}} {
		stdout, stderr, code := execute(t, "", append(args, "--engine", server.URL)...)
		assert.Equal(t, command.ExitDone, code, stderr)
		assert.Contains(t, stdout, `hotParam rule "per-user" on orders: values 2, max values 100000`)
		assert.Contains(t, stdout, table)
	}
	stdout, stderr, code := execute(t, "", "explain", "orders", "--engine", server.URL, "--attr", "user=alice")
	assert.Equal(t, command.ExitDone, code, stderr)
	assert.Contains(t, stdout, "\n   looks at user=alice\n")
	assert.Contains(t, stdout, "; has refused 1 call; such a call passes in 500ms\n")
	stdout, _, _ = execute(t, "", "explain", "orders", "--engine", server.URL, "--attr", "user=7")
	assert.Contains(t, stdout, "looks at user=7\n")
	stdout, _, _ = execute(t, "", "explain", "orders", "--engine", server.URL)
	assert.Contains(t, stdout, "looks at user (the call has none)\n")
}
