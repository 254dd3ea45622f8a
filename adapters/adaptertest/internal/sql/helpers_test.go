package penstocksql_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstocksql "github.com/penstock-go/penstock/adapters/sql"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventTimeout is how long an event may take on a machine that is very busy.
const eventTimeout = 2 * time.Minute

// newEngine returns an engine on a clock that stands still.
func newEngine(tb testing.TB, set rules.Set) *core.Engine {
	tb.Helper()
	engine, _ := adaptertest.NewEngine(tb, set)
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

// record returns a rule that records calls, and looks at an attribute of them.
func record(t *testing.T, key string) (*adaptertest.Probe, *core.Engine) {
	t.Helper()
	probe := &adaptertest.Probe{Attribute: key}
	return probe, probe.NewEngine(t)
}

// withoutConnections are options by which opening connections is no call.
func withoutConnections() penstocksql.Options {
	return penstocksql.Options{Resource: func(_ context.Context, c penstocksql.Call) string {
		if c.Op == penstocksql.Connect {
			return ""
		}
		return "sql:" + string(c.Op)
	}}
}

// outcomes are how calls ended.
func outcomes(of ...adaptertest.Outcome) []adaptertest.Outcome { return of }

const (
	succeeded = adaptertest.Succeeded
	failed    = adaptertest.Failed
	ignored   = adaptertest.Ignored
)
