package core_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
)

// Names are called for the first time in two minutes while idle ones are looked for:
// however these meet, no limit is exceeded, for none is counted twice.
func TestEvictionNeverLetsMorePassThanTheLimit(t *testing.T) {
	const names, callers = 4, 2
	rounds := longtest.Of(300, 1500)
	if raceEnabled {
		rounds = 30 // which take as long
	}
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: quiet})
	defer e.Close()
	// The more a sweep has to look at, the longer it takes between the first and the last.
	set := []flow.Rule{{Match: "*", Limit: 1}}
	for i := range 30 {
		set = append(set, flow.Rule{Name: fmt.Sprint("wide", i), Match: "*", Limit: 1e6})
	}
	load(t, e, set...)
	for round := range rounds {
		c.Advance(2 * time.Minute)
		var passed [names]atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range callers * names {
			all.Go(func() {
				<-start
				for range (round * (i + 1)) % 200 { // sooner or later
					e.Status()
				}
				guard, err := e.Entry(context.Background(), fmt.Sprint("n", i%names))
				if err == nil {
					guard.Exit()
					passed[i%names].Add(1)
				}
			})
		}
		all.Go(func() {
			<-start
			e.Snapshot()
		})
		close(start)
		all.Wait()
		for i := range passed {
			require.EqualValues(t, 1, passed[i].Load(), "n%d in round %d", i, round)
		}
	}
}
