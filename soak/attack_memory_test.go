package main

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// distinctValues can be 100 million by hand:
//
//	go test ./soak -run ManyDistinctValues -distinct 100000000 -timeout 0
var distinctValues = flag.Int("distinct", 150_000, "how many values the test of flat memory makes calls with")

// Millions of values come twice each, and are refused the second time, under rules of all
// algorithms, with penalties, for names that are patterns. The table of penalties, the
// summary of the hottest values and the tables of states are as large as at the beginning.
func TestMemoryIsFlatOverManyDistinctValues(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	c := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	engine := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	const size = 5000
	user := rule.StringsOf("user")
	penalty := hotparam.Penalty{After: 2, Within: time.Second, For: time.Second}
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "bucket", Match: "api:*", Param: user, Limit: 1, MaxValues: size, Penalty: penalty},
		{Name: "window", Match: "api:*", Param: user, Limit: 1, Algorithm: hotparam.SlidingWindow, MaxValues: size, Shadow: true},
		{Name: "throttle", Match: "api:*", Param: user, Limit: 1, Algorithm: hotparam.Throttle, MaxValues: size, Shadow: true},
		{Name: "calls", Match: "api:*", Param: user, Concurrency: 1, MaxValues: size},
		{Name: "both", Match: "api:*", Shared: true, Param: rule.StringsOf("user", "id"), Limit: 1, MaxValues: size, Shadow: true},
	}}))
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	names := []string{"api:a", "api:b", "api:c"}
	next := 0
	calls := func(values int) {
		for range values {
			next++
			c.Advance(50 * time.Microsecond)
			value := core.Int("user", int64(next))
			if next%2 == 0 {
				value = core.String("user", "user-"+strconv.Itoa(next))
			}
			for range 2 {
				guard, _ := engine.Entry(context.Background(), names[next%3], value, core.Int("id", int64(next)))
				guard.Exit()
			}
		}
	}
	calls(50_000)
	before := heap()
	calls(*distinctValues)
	after := heap()
	t.Logf("%d values: %d KiB, then %d KiB", next, before>>10, after>>10)
	assert.Less(t, int64(after)-int64(before), int64(256<<10))
	for _, applied := range engine.Explain("api:a") {
		if values := applied.Gauges[0]; assert.LessOrEqual(t, values, float64(2*size), applied.Name) && applied.Name == "calls" {
			assert.Zero(t, values)
		}
		assert.LessOrEqual(t, len(applied.Values), 10)
	}
	runtime.KeepAlive(engine)
}

// Names that clients choose as resources are bounded, and warned about once, with what to
// do. As values they have limits of their own, and need no more memory.
func TestNamesThatClientsChooseAreWarnedAboutOnce(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer // the handler locks
	c := clock.NewVirtual(time.Unix(1_700_000_000, 0))
	engine := core.New(core.Config{Clock: c, Logger: slog.New(slog.NewTextHandler(&text, nil)), MaxResources: 50, Seed: 1})
	require.NoError(t, engine.Load(rules.Set{
		HotParam: []hotparam.Rule{{Match: "user:*", Shared: true, Param: rule.StringsOf("user"), Limit: 1}},
	}))
	for i := range 5000 {
		n := strconv.Itoa(i)
		guard, err := engine.Entry(context.Background(), "user:"+n, core.String("user", n))
		require.NoError(t, err, "each user has a limit of its own, whatever its resource")
		guard.Exit()
	}
	assert.LessOrEqual(t, len(engine.Snapshot().Resources), 52)
	engine.Close()
	assert.Equal(t, 1, strings.Count(text.String(), "more resource names than MaxResources"), text.String())
	assert.Contains(t, text.String(), "hotParam")
}
