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
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

const explained = `flow:
  - {name: all, resource: orders:create, limit: 100}
  - {name: mobile, resource: orders:create, limit: 3, origin: mobile}
  - {name: others, match: "orders:*", limit: 2, window: 1m, origin: other}
  - {name: queue, match: "~create$", limit: 5, algorithm: throttle, maxWait: 1s}
  - {name: trial, resource: orders:create, limit: 1, shadow: true}
  - {name: users, resource: users, limit: 1}
`

// writeRules returns the path of a document.
func writeRules(t *testing.T, document string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orders.yaml")
	require.NoError(t, os.WriteFile(path, []byte(document), 0o600))
	return path
}

func TestExplainShowsRulesAndNearMisses(t *testing.T) {
	path := writeRules(t, explained)
	stdout, stderr, code := execute(t, "", "explain", "orders:create", "--rules", path, "--origin", "mobile", "--attr", "user=7")
	assert.Equal(t, command.ExitDone, code)
	assert.Empty(t, stderr)
	assert.Equal(t, `A call of orders:create by mobile is held against 4 rules, in this order:

1. flow rule "queue", orders.yaml:5:5
   match ~create$, limit 5, algorithm throttle, maxWait 1s

2. flow rule "mobile", orders.yaml:3:5
   resource orders:create, limit 3, origin mobile

3. flow rule "all", orders.yaml:2:5
   resource orders:create, limit 100

4. flow rule "trial", orders.yaml:6:5
   resource orders:create, limit 1, shadow true
   a shadow: it refuses nothing

Not held against:

- flow rule "others", orders.yaml:4:5
  match orders:*, limit 2, window 1m, origin other
  is for callers that no rule here names, and one names "mobile"
`, strings.ReplaceAll(stdout, path, "orders.yaml"))
}

func TestExplainSaysThatNoRuleApplies(t *testing.T) {
	stdout, _, code := execute(t, "", "explain", "stock", "--rules", writeRules(t, explained))
	assert.Equal(t, command.ExitDone, code)
	assert.Equal(t, "No rule applies to a call of stock by a caller who is not named: it passes and is counted.\n", stdout)
}

func TestExplainOfRulesWithPatternsThatAreNotForTheResource(t *testing.T) {
	path := writeRules(t, "flow: [{match: '*', limit: 1, except: b}]")
	stdout, _, _ := execute(t, "", "explain", "b", "--rules", path)
	assert.Contains(t, stdout, "\n  excepts the resource\n")
	stdout, _, _ = execute(t, "", "explain", "GET:/healthz", "--rules", path)
	assert.Contains(t, stdout, "\n  has a pattern, and the resource is exempt from those")
	stdout, _, _ = execute(t, "", "explain", "a", "--rules", path)
	assert.NotContains(t, stdout, "Not held against")
}

func TestExplainOfRulesForOtherCallersOnly(t *testing.T) {
	path := writeRules(t, "flow: [{resource: a, limit: 1, origin: mobile}]")
	stdout, _, _ := execute(t, "", "explain", "a", "--rules", path)
	assert.Contains(t, stdout, "No rule applies to a call of a by a caller")
	assert.Contains(t, stdout, "Not held against:\n\n- flow rule \"a\", "+path+":1:8\n")
	assert.Contains(t, stdout, "\n  is only for calls of \"mobile\"\n")
}

func TestExplainOfAResourceThatRulesOnlyRelateTo(t *testing.T) {
	path := writeRules(t, `flow: [{match: "db:*", limit: 1, related: "db:write"}]`)
	stdout, _, _ := execute(t, "", "explain", "db:write", "--rules", path)
	assert.Contains(t, stdout, "No rule applies to a call of db:write")
	assert.NotContains(t, stdout, "Not held against")
}

func TestExplainAsJSON(t *testing.T) {
	path := writeRules(t, explained)
	stdout, _, code := execute(t, "", "explain", "orders:list", "--rules", path, "--output", "json")
	assert.Equal(t, command.ExitDone, code)
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
	assert.Equal(t, map[string]any{"resource": "orders:list", "rules": []any{map[string]any{
		"kind": "flow", "name": "others", "shadow": false, "document": path, "line": 4.0, "column": 5.0,
		"fields": []any{
			map[string]any{"name": "match", "value": "orders:*"},
			map[string]any{"name": "limit", "value": "2"},
			map[string]any{"name": "window", "value": "1m"},
			map[string]any{"name": "origin", "value": "other"},
		},
	}}}, answer)
}

func TestExplainReadsFromARunningEngine(t *testing.T) {
	now := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	engine := core.New(core.Config{Clock: now, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	set, err := rules.Parse("code", []byte(`flow:
  - {name: all, resource: orders:create, limit: 2}
  - {name: trial, resource: orders:create, limit: 1, shadow: true}
`))
	require.NoError(t, err)
	require.NoError(t, engine.Load(set))
	for range 5 {
		if guard, err := engine.Entry(t.Context(), "orders:create"); err == nil {
			guard.Exit()
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/penstock/", inspect.Handler(engine, inspect.Options{}))
	server := httptest.NewServer(mux)
	defer server.Close()

	want := `A call of orders:create by a caller who is not named is held against 2 rules, in this order:

1. flow rule "all", made in code
   resource orders:create, limit 2
   now 2 per 1s, 0 remaining, more in 1s; has refused 3 calls; such a call passes in 1s

2. flow rule "trial", made in code
   resource orders:create, limit 1, shadow true
   a shadow: it refuses nothing
   now 1 per 1s, 0 remaining, more in 1s; would have refused 1 call; such a call passes in 1s
`
	for _, address := range []string{server.URL + "/debug/penstock", strings.TrimPrefix(server.URL, "http://") + "/debug/penstock/"} {
		stdout, stderr, code := execute(t, "", "explain", "orders:create", "--engine", address)
		assert.Equal(t, command.ExitDone, code, stderr)
		assert.Equal(t, want, stdout)
	}
	stdout, _, _ := execute(t, "", "explain", "orders:create", "--engine", server.URL+"/debug/penstock", "-o", "json")
	var answer inspect.Explanation
	require.NoError(t, json.Unmarshal([]byte(stdout), &answer))
	assert.EqualValues(t, 3, answer.Rules[0].State.Blocked)
}

// toll is a rule of a kind that looks at attributes.
type toll struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
}

func tollKind() *rule.Type[toll] {
	common := func(r *toll) rule.Common {
		return rule.Common{Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Origin: &r.Origin, Shared: &r.Shared, Shadow: &r.Shadow}
	}
	return rule.Define(rule.Spec[toll]{
		Kind: "toll", Phase: rule.PhaseAccess, Reason: rule.Denied, Common: common,
		Attributes: func(*toll) []string { return []string{"user", "origin", "paid", rule.KeyIPPrefix} },
		New:        func(*toll, rule.Env) rule.Limiter { return tollLimiter{} },
	})
}

type tollLimiter struct{ rule.Limiter }

func (tollLimiter) Status(clock.Instant) rule.Status          { return rule.Status{} }
func (tollLimiter) RetryAfter(rule.Call) (wait time.Duration) { return 0 }

func TestExplainShowsTheAttributesThatARuleLooksAt(t *testing.T) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Kinds: []rule.Definition{tollKind()}})
	defer engine.Close()
	require.NoError(t, engine.Load(rules.Set{Custom: []rule.Rule{tollKind().Of(toll{Resource: "gate"})}}))
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	defer server.Close()
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{nil, "user (the call has none) and origin (the call has none) and paid (the call has none) and ipPrefix (the call has none)"},
		{[]string{"--attr", `user="7"`, "--attr", "paid=true", "--attr", "ip=10.0.0.1", "--origin", "mobile"}, `user="7" and origin=mobile and paid=true and ipPrefix=10.0.0.1`},
		{[]string{"--attr", "user=", "--attr", "origin=web", "--attr", "ipPrefix=a", "--attr", "ip=b"}, "user= and origin=web and paid (the call has none) and ipPrefix=a"},
	} {
		stdout, stderr, code := execute(t, "", append([]string{"explain", "gate", "--engine", server.URL}, test.flags...)...)
		assert.Equal(t, command.ExitDone, code, stderr)
		assert.Contains(t, stdout, "1. toll rule \"gate\", made in code\n   resource gate\n   looks at "+test.want+"\n   in force\n")
	}
}

func TestExplainReadsFromEtcd(t *testing.T) {
	server, err := etcdtest.Start(etcdtest.Options{})
	require.NoError(t, err)
	defer server.Stop()
	_, err = server.Client().Put(t.Context(), "/penstock/shop/orders.yaml", explained)
	require.NoError(t, err)
	stdout, stderr, code := execute(t, "", "explain", "users", "--app", "shop", "--endpoints", server.Endpoint())
	assert.Equal(t, command.ExitDone, code, stderr)
	assert.Contains(t, stdout, "1. flow rule \"users\", orders.yaml:7:5\n   resource users, limit 1\n")
	_, stderr, code = execute(t, "", "explain", "users", "--app", "shopp", "--endpoints", server.Endpoint())
	assert.Equal(t, command.ExitDone, code)
	assert.Equal(t, "penstock: warning: there are no documents below /penstock/shopp/: is that the right place?\n", stderr)
}

func TestExplainErrors(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/text/") {
			_, _ = w.Write([]byte("hello"))
			return
		}
		http.NotFound(w, r)
	}))
	defer stranger.Close()
	path := writeRules(t, explained)
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"explain"}, command.ExitUsage, "which resource? Name the one that is called"},
		{[]string{"explain", "", "--rules", path}, command.ExitUsage, "the resource is missing"},
		{[]string{"explain", "a"}, command.ExitUsage, "are named by --rules or --engine"},
		{[]string{"explain", "a", "--rules", path, "--engine", "x"}, command.ExitUsage, "--rules and --engine are two places to look at: leave one out"},
		{[]string{"explain", "a", "--rules", path, "--origin", strings.Repeat("x", 1025)}, command.ExitUsage, "1025 bytes long"},
		{[]string{"explain", "a", "--rules", path + "x"}, command.ExitFailed, "no such file"},
		{[]string{"explain", "a", "--rules", writeRules(t, "")}, command.ExitNo, "the document is empty"},
		{[]string{"explain", "a", "--engine", "http://"}, command.ExitUsage, "must be HOST:PORT or a URL"},
		{[]string{"explain", "a", "--engine", "127.0.0.1:1"}, command.ExitFailed, "asking the engine at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused: does the service run, and listen there?"},
		{[]string{"explain", "a", "--engine", stranger.URL}, command.ExitFailed, "explain?resource=a: does it serve the handler of the package inspect, and under that path?"},
		{[]string{"explain", "a", "--engine", stranger.URL + "/text"}, command.ExitFailed, "is it another service?"},
		{[]string{"explain", "a", "--endpoints", "127.0.0.1:1", "--app", "shop", "--dial-timeout", "1s"}, command.ExitFailed, "127.0.0.1:1"},
	} {
		stdout, stderr, code := execute(t, "", c.args...)
		assert.Equal(t, c.code, code, c.args)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, c.stderr)
	}
}
