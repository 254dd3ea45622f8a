package cli_test

import (
	"bytes"
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/cmd/penstock/cli"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/rule"
)

// deny is a kind of rule that this test alone knows: it refuses the calls of one user.
type deny struct {
	Name, Resource, Match, Origin, User string
	Shared, Shadow                      bool
}

func denyKind() rule.Definition {
	common := func(d *deny) rule.Common {
		return rule.Common{
			Name: &d.Name, Resource: &d.Resource, Match: &d.Match, Shared: &d.Shared, Origin: &d.Origin, Shadow: &d.Shadow,
		}
	}
	return rule.Define(rule.Spec[deny]{
		Kind: "deny", Phase: rule.PhaseAccess, Reason: rule.Denied, Common: common, States: []string{"calm", "angry"},
		Fields: []rule.Field[deny]{
			rule.FieldOf("user", func(d *deny) *string { return &d.User }).
				Required("is missing: write who may not call").Says("who may not call"),
		},
		Examples: []rule.Example[deny]{{
			About: "nothing for eve", Rule: deny{Resource: "orders", User: "eve"}, Fields: []string{"resource", "user"},
		}},
		Attributes: func(*deny) []string { return []string{"user"} },
		New:        func(d *deny, _ rule.Env) rule.Limiter { return denyLimiter{d.User} },
	})
}

type denyLimiter struct{ user string }

func (l denyLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if user, _ := c.Attribute.Text(); user == l.user {
		return rule.RetryTicket(rule.Never), rule.Block
	}
	return 0, rule.Pass
}

func (denyLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}
func (denyLimiter) RetryAfter(rule.Call) time.Duration         { return 0 }
func (denyLimiter) Status(clock.Instant) rule.Status           { return rule.Status{State: "calm"} }
func (denyLimiter) Idle(clock.Instant) bool                    { return true }

// penstock is a command line that knows the kind.
type penstock struct {
	t   *testing.T
	env map[string]string
}

// run runs a command, which has to succeed, and returns what it says.
func (p penstock) run(args ...string) string {
	p.t.Helper()
	out, code := p.try(args...)
	require.Zero(p.t, code, "%v: %s", args, out)
	return out
}

func (p penstock) try(args ...string) (out string, code int) {
	var b bytes.Buffer
	code = cli.Run(p.t.Context(), cli.Config{
		Args: args, Out: &b, Err: &b, Getenv: func(name string) string { return p.env[name] }, Kinds: []rule.Definition{denyKind()},
	})
	return b.String(), code
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestCommandsKnowTheKindsOfTheProgram(t *testing.T) {
	p := penstock{t: t}
	rules := write(t, "shop.yaml", "deny: [{name: no-eve, resource: orders, user: eve}]\nflow: [{resource: orders, limit: 10}]\n")
	assert.Contains(t, p.run("validate", rules), "1 document, 2 rules, no mistakes")
	assert.Contains(t, p.run("example", "deny"), "# who may not call; required\n")
	assert.Contains(t, p.run("example"), "\ndeny:\n  # nothing for eve\n")
	assert.Contains(t, p.run("explain", "orders", "--rules", rules), `deny rule "no-eve"`)
	assert.Contains(t, p.run("diff", rules, "--against", write(t, "shop.yaml", "flow: []\n")), "+ deny no-eve (shop.yaml): resource orders, user eve")
	load := write(t, "load.yaml", "streams: [{resource: orders, rate: 5, attrs: {user: eve}}]\n")
	assert.Contains(t, p.run("simulate", "--rules", rules, "--load", load, "--duration", "2s", "--output", "json"), `"blocked":5`)

	cases := "cases:\n- name: eve is refused\n  load: [orders 1/s attrs=user:eve, orders 1/s attrs=user:ann]\n  duration: 3s\n" +
		"  expect: {passed: 1x3, blockedBy: {no-eve: 3}}\n"
	for _, of := range []string{"rules: " + filepath.Base(rules), "rules:\n  deny: [{name: no-eve, resource: orders, user: eve}]"} {
		suite := filepath.Join(filepath.Dir(rules), "shop_test.yaml")
		require.NoError(t, os.WriteFile(suite, []byte(of+"\n"+cases), 0o600))
		assert.Contains(t, p.run("test", suite), "ok ")
	}
	out, code := p.try("validate", write(t, "a.yaml", "deny: [{resource: orders, usr: eve}]\n"))
	assert.Equal(t, 1, code)
	assert.Contains(t, out, `deny rule "orders": unknown field "usr": did you mean "user"?`)
	out, code = p.try("validate", write(t, "a.yaml", "denny: [{resource: orders, user: eve}]\n"))
	assert.Equal(t, 1, code)
	assert.Contains(t, out, `unknown kind "denny": did you mean "deny"?`)
}

func TestDocumentsInEtcdHaveTheKindsOfTheProgram(t *testing.T) {
	server, err := etcdtest.Start(etcdtest.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	p := penstock{t, map[string]string{"PENSTOCK_ENDPOINTS": server.Endpoint(), "PENSTOCK_APP": "shop"}}
	out := p.run("push", "--yes", write(t, "shop.yaml", "deny: [{resource: orders, user: eve}]\n"))
	assert.Contains(t, out, "+ deny orders (shop.yaml)")
	assert.NotContains(t, out, "warning")
	out = p.run("push", "--yes", write(t, "shop.yaml", "deny: [{resource: orders, user: bob}]\n"))
	assert.Contains(t, out, "~ deny orders (shop.yaml)\n    user: eve → bob\n")
	assert.Contains(t, p.run("explain", "orders"), `deny rule "orders"`)
	assert.Contains(t, p.run("rollback", "2", "--yes"), "user: bob → eve")
	assert.Equal(t, "--- # shop.yaml\ndeny: [{resource: orders, user: eve}]\n", p.run("pull"))
}

func TestRunNeedsNothingButArguments(t *testing.T) {
	assert.Zero(t, cli.Run(t.Context(), cli.Config{Args: []string{"example"}}))
	assert.Equal(t, 2, cli.Run(t.Context(), cli.Config{Args: []string{"exampel"}}))
	var out strings.Builder
	assert.Equal(t, 1, cli.Run(t.Context(), cli.Config{Args: []string{"validate", "-"}, Out: &out}))
	assert.Contains(t, out.String(), "the document is empty")
}

// Machines and containers need not have the database of time zones.
func TestTimeZonesComeWithTheCommand(t *testing.T) {
	of, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	assert.Contains(t, of.Imports, "time/tzdata", "of package cli itself, as its tests may import it as well")
}
