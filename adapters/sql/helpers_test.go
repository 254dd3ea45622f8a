package penstocksql_test

import (
	"database/sql"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventTimeout is how long an event may take on a machine that is very busy.
const eventTimeout = 60 * time.Second

// newEngine returns an engine on a clock that stands still.
func newEngine(tb testing.TB, set rules.Set, kinds ...rule.Definition) *core.Engine {
	tb.Helper()
	engine := core.New(core.Config{
		Clock: clock.NewVirtual(time.Unix(1_000_000, 0)), Logger: slog.New(slog.DiscardHandler), Kinds: kinds,
	})
	tb.Cleanup(engine.Close)
	require.NoError(tb, engine.Load(set))
	return engine
}

// limited is a set with one rule for a resource.
func limited(resource string, limit float64) rules.Set {
	return rules.Set{Flow: []flow.Rule{{Name: "limit", Resource: resource, Limit: limit}}}
}

// open returns a guarded database of a driver.
func open(tb testing.TB, f *fake, engine *core.Engine, options penstocksql.Options) *sql.DB {
	tb.Helper()
	db := sql.OpenDB(penstocksql.WrapConnector(plainConnector{f}, engine, options))
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

func totals(engine *core.Engine, resource string) stat.Totals {
	return engine.Resource(resource).Snapshot().Totals
}

// names returns the resources of which there were calls.
func names(engine *core.Engine) (names []string) {
	for _, r := range engine.Snapshot().Resources {
		if r.Passed+r.Blocked > 0 {
			names = append(names, r.Name)
		}
	}
	return names
}

// recorder is a kind of rule that records what rules get to know of the calls of a resource.
type recorder struct {
	key string // of the attribute that it looks at

	mu    sync.Mutex
	calls []rule.Call
	exits []rule.Exit
}

type recorderRule struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
}

func record(t *testing.T, resource, key string) (*recorder, *core.Engine) {
	t.Helper()
	r := &recorder{key: key}
	common := func(r *recorderRule) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	kind := rule.Define(rule.Spec[recorderRule]{
		Kind: "recorder", Common: common, Fields: rule.TargetFields(common),
		Attributes: func(recorderRule) []string { return []string{key} },
		New:        func(recorderRule, rule.Env) rule.Limiter { return r },
	})
	return r, newEngine(t, rules.Set{Custom: []rule.Rule{kind.Of(recorderRule{Name: "all", Match: resource})}}, kind)
}

func (r *recorder) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return 0, rule.Pass
}

func (r *recorder) Done(_ rule.Ticket, e rule.Exit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exits = append(r.exits, e)
}

func (r *recorder) GiveBack(clock.Instant, rule.Ticket, int32) {}

func (r *recorder) RetryAfter(rule.Call) time.Duration { return 0 }

func (r *recorder) Status(clock.Instant) rule.Status { return rule.Status{} }

func (r *recorder) Idle(clock.Instant) bool { return true }

// outcomes returns how the calls ended: "ok", "failed" or "ignored".
func (r *recorder) outcomes() (outcomes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.exits {
		switch {
		case e.Failed:
			outcomes = append(outcomes, "failed")
		case e.Ignored:
			outcomes = append(outcomes, "ignored")
		default:
			outcomes = append(outcomes, "ok")
		}
	}
	return outcomes
}

// last returns what rules got to know of the last call.
func (r *recorder) last() rule.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[len(r.calls)-1]
}
