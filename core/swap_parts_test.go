package core

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// numbered is a limiter that has something to do at the beginning and at the end.
type numbered struct {
	noLimiter
	number int
}

func (*numbered) Activate(clock.Instant) {}

func (*numbered) Retire(clock.Instant) {}

// However many goroutines make limiters, those that begin and end are noted in order, once each, behind those of before.
func TestPartsOfASwapNoteInOrderWhichLimitersBeginAndEnd(t *testing.T) {
	t.Parallel()
	s := &swap{maker: &limiterMaker{callEnv: new(callEnv)}}
	for _, count := range []int{3, 600, 5000} {
		first := len(s.activate)
		s.inParts(count, func(p *swapPart, i int) {
			limiter := call.VersionedLimiter{Limiter: &numbered{number: first + i}}
			p.activateLimiter(limiter)
			p.retireLimiter(limiter)
		})
	}
	require.Len(t, s.activate, 5603)
	require.Len(t, s.retire, 5603)
	for i := range s.activate {
		require.Equal(t, i, s.activate[i].(*numbered).number)
		require.Equal(t, i, s.retire[i].(*numbered).number)
	}
}

// manyOf returns so many rules of several kinds, for a name each and for patterns, that let nearly as many calls pass
// as they say.
func manyOf(count int, limit float64) (set rules.Set) {
	for i := range count {
		name := fmt.Sprint("r", i)
		of := flow.Rule{Resource: name, Limit: limit + float64(i%7), Window: 1e9, Algorithm: flow.FixedWindow}
		switch i % 3 {
		case 1:
			of.Algorithm, of.Burst = flow.TokenBucket, of.Limit
		case 2:
			set.Breaker = append(set.Breaker, breaker.Rule{Resource: name, Threshold: .5, MinCalls: int(limit)})
		}
		set.Flow = append(set.Flow, of)
	}
	set.Flow = append(set.Flow, flow.Rule{Name: "all", Match: "*", Limit: 1e6 * limit})
	return set
}

// passesAfterLoads returns how many calls of each rule pass once its limit was changed twice, after four calls.
func passesAfterLoads(t *testing.T, count int) (passes []int) {
	t.Helper()
	e := New(Config{Clock: clock.NewVirtual(time.Unix(1_800_000_000, 0)), Logger: slog.New(slog.DiscardHandler)})
	defer e.Close()
	require.NoError(t, e.Load(manyOf(count, 10)))
	for i := range 4 * count {
		guard, err := e.Entry(t.Context(), fmt.Sprint("r", i/4))
		require.NoError(t, err)
		guard.Exit()
	}
	var calls sync.WaitGroup
	stop := make(chan struct{})
	calls.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			guard, err := e.Entry(t.Context(), fmt.Sprint("other", i%100))
			assert.NoError(t, err)
			guard.Exit()
		}
	})
	require.NoError(t, e.Load(manyOf(count, 5)))
	require.NoError(t, e.Load(manyOf(count, 6)))
	close(stop)
	calls.Wait()
	for i := range count {
		passed := 0
		for ; passed < 100; passed++ {
			guard, err := e.Entry(t.Context(), fmt.Sprint("r", i))
			if err != nil {
				var block *BlockError
				require.ErrorAs(t, err, &block)
				require.Equal(t, fmt.Sprint("r", i), block.Rule)
				break
			}
			guard.Exit()
		}
		passes = append(passes, passed)
	}
	return passes
}

// The rules of a large set count on as those of a small one do, whichever goroutine has made their limiters, while
// calls come.
func TestManyRulesChangeAtOnceAndKeepWhatTheyHaveCounted(t *testing.T) {
	t.Parallel()
	few, many := passesAfterLoads(t, 21), passesAfterLoads(t, 1500) // 21 rules are all that differ
	assert.Equal(t, 2, few[0], "6 less 4")
	for i, passed := range many {
		require.Equal(t, few[i%21], passed, "rule %d", i)
	}
}

// All mistakes of a large set are told, in the order of its rules, and nothing changes.
func TestAllMistakesOfManyRulesAreToldInOrder(t *testing.T) {
	t.Parallel()
	e := New(Config{Clock: clock.NewVirtual(time.Unix(1_800_000_000, 0)), Logger: slog.New(slog.DiscardHandler)})
	defer e.Close()
	require.NoError(t, e.Load(manyOf(1500, 10)))
	wrong := manyOf(1500, 20)
	var want []string
	for _, i := range []int{0, 3, 700, 750, 1499} {
		wrong.Flow[i].Limit = -1
		want = append(want, fmt.Sprint("flow ", i))
	}
	var problems rules.Problems
	require.ErrorAs(t, e.Load(wrong), &problems)
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprint(p.Kind, " ", p.Index))
		assert.Equal(t, "limit", p.Field)
	}
	assert.Equal(t, want, got)
	assert.EqualValues(t, 1, e.Revision())
	of, _ := e.rules.inForce(rule.Key{Kind: rules.KindFlow, Name: "r700"}).Version.Value().(flow.Rule)
	assert.InDelta(t, 10, of.Limit, 0)
}
