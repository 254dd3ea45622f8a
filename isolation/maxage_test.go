package isolation_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// aged are the gauges of old places.
func aged(l rule.Limiter, now clock.Instant) (oldest time.Duration, expired int) {
	g := l.Status(now).Gauges
	return time.Duration(g[4] * float64(time.Second)), int(g[5])
}

func pass(t require.TestingT, l limiter, now clock.Instant) rule.Ticket {
	ticket, decision := l.Acquire(rule.Call{Now: now, Tokens: 1})
	require.Equal(t, rule.Pass, decision)
	return ticket
}

func TestOldestIsTheAgeOfTheOldestCallUnderWay(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, wide())
	at := epoch.Add
	check := func(now, want time.Duration) {
		t.Helper()
		oldest, _ := aged(l, at(now))
		assert.GreaterOrEqual(t, oldest, want)
		assert.LessOrEqual(t, oldest, want+max(want/16, 250*time.Millisecond))
	}
	check(time.Hour, 0)
	first := pass(t, l, at(2*time.Hour))
	second := pass(t, l, at(2*time.Hour+10*time.Second))
	for i := range 600 { // others come and go
		now := at(2*time.Hour + 11*time.Second + time.Duration(i)*50*time.Millisecond)
		ticket := pass(t, l, now)
		l.Done(ticket, rule.Exit{Now: now + 1000})
	}
	check(2*time.Hour+time.Minute, time.Minute)
	l.Done(first, rule.Exit{Now: at(2*time.Hour + time.Minute)})
	check(2*time.Hour+time.Minute, 50*time.Second)
	l.Done(second, rule.Exit{Now: at(2*time.Hour + time.Minute)})
	check(3*time.Hour, 0)
}

func TestOldestIsKnownHoweverManyAreOld(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, wide())
	var tickets []rule.Ticket
	now := epoch
	for range 5000 { // more than there are groups
		tickets = append(tickets, pass(t, l, now))
		now = now.Add(time.Second)
	}
	for len(tickets) > 0 {
		oldest, _ := aged(l, now)
		want := time.Duration(len(tickets)) * time.Second
		require.GreaterOrEqual(t, oldest, want)
		l.Done(tickets[0], rule.Exit{Now: now})
		tickets = tickets[1:]
	}
	assert.True(t, l.Idle(now))
}

func TestPlaceIsGivenBackAfterMaxAge(t *testing.T) {
	t.Parallel()
	var said []string
	r := isolation.Rule{Resource: "r", Limit: 2, MaxAge: time.Minute}
	l := sound(t, r).NewLimiter(rule.Env{Version: 1, Now: epoch, Warn: func(m string) { said = append(said, m) }}).(limiter)
	refused := func(now clock.Instant) {
		t.Helper()
		_, decision := l.Acquire(rule.Call{Now: now, Tokens: 1})
		assert.Equal(t, rule.Block, decision)
	}
	leaked := pass(t, l, epoch.Add(time.Second))
	ends := pass(t, l, epoch.Add(30*time.Second))
	refused(epoch.Add(61*time.Second - 1)) // not earlier
	l.Done(ends, rule.Exit{Now: epoch.Add(62 * time.Second)})
	third, fourth := pass(t, l, epoch.Add(63*time.Second)), pass(t, l, epoch.Add(63*time.Second))
	refused(epoch.Add(63 * time.Second))
	oldest, expired := aged(l, epoch.Add(63*time.Second))
	assert.Less(t, oldest, 2*time.Second)
	assert.Equal(t, 1, expired)
	l.Done(leaked, rule.Exit{Now: epoch.Add(64 * time.Second)}) // after all
	refused(epoch.Add(64 * time.Second))
	l.Done(third, rule.Exit{Now: epoch.Add(65 * time.Second)})
	l.Done(fourth, rule.Exit{Now: epoch.Add(65 * time.Second)})
	assert.True(t, l.Idle(epoch.Add(66*time.Second)))
	assert.Equal(t, []string{"1 place was held for longer than maxAge, which is 1m0s, and counts as given back: " +
		"find what does not end its call, or raise maxAge"}, said)
}

func TestWaitingCallGetsThePlaceThatIsGivenBack(t *testing.T) {
	t.Parallel()
	l := newLimiter(t, isolation.Rule{Resource: "r", Limit: 1, MaxAge: 10 * time.Second, MaxWait: time.Hour})
	leaked := pass(t, l, epoch)
	w, _, decision := l.Join(rule.Call{Now: epoch, Tokens: 1}, patience(func() {}))
	require.Equal(t, rule.Wait, decision)
	now := epoch
	var ticket rule.Ticket
	for decision == rule.Wait { // nobody else comes, nor wakes it
		var wait time.Duration
		ticket, wait, decision = w.Poll(now)
		now = now.Add(wait)
	}
	assert.Equal(t, rule.Pass, decision)
	assert.InDelta(t, 10.2, now.Sub(epoch).Seconds(), 0.2)
	l.Done(leaked, rule.Exit{Now: now})
	assert.Equal(t, 1, gaugesOf(l, now).inFlight)
	l.Done(ticket, rule.Exit{Now: now})
	assert.Equal(t, 0, gaugesOf(l, now).inFlight)
}

func TestMaxAgeThatAReloadBringsCountsForThePlacesThatAreTaken(t *testing.T) {
	t.Parallel()
	r := isolation.Rule{Resource: "r", Limit: 1}
	l := newLimiter(t, r)
	leaked := pass(t, l, epoch)
	r.MaxAge = time.Minute
	l = adopt(t, l, r, 2)
	l.Activate(epoch.Add(time.Hour))
	ticket := pass(t, l, epoch.Add(time.Hour))
	l.Done(leaked, rule.Exit{Now: epoch.Add(time.Hour)})
	assert.Equal(t, 1, gaugesOf(l, epoch.Add(time.Hour)).inFlight)
	l.Done(ticket, rule.Exit{Now: epoch.Add(time.Hour)})
	assert.Equal(t, 0, gaugesOf(l, epoch.Add(time.Hour)).inFlight)
}

// Each place is given back once: by the end of its call, or because of its age.
func TestPlacesAreGivenBackOnceProperty(t *testing.T) {
	t.Parallel()
	const maxAge = 32 * time.Second
	type held struct {
		start  clock.Instant
		ticket rule.Ticket
	}
	rapid.Check(t, func(t *rapid.T) {
		r := isolation.Rule{Resource: "r", Limit: 5, MaxAge: maxAge}
		l, now := newLimiter(t, r), epoch
		var calls []held
		young := func(age time.Duration) (n int) {
			for _, c := range calls {
				if now.Sub(c.start) < age {
					n++
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 300, 1000, 7000, 31000, 40000}).Draw(t, "ms")) * time.Millisecond)
			},
			"call": func(t *rapid.T) {
				least, most := young(maxAge), young(maxAge+time.Second)
				ticket, decision := l.Acquire(rule.Call{Now: now, Tokens: 1})
				if most < r.Limit {
					require.Equal(t, rule.Pass, decision)
				}
				if least >= r.Limit {
					require.Equal(t, rule.Block, decision)
				}
				if decision == rule.Pass {
					calls = append(calls, held{now, ticket})
				}
			},
			"end": func(t *rapid.T) {
				if len(calls) > 0 {
					i := rapid.IntRange(0, len(calls)-1).Draw(t, "which")
					l.Done(calls[i].ticket, rule.Exit{Now: now})
					calls = slices.Delete(calls, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				g := gaugesOf(l, now)
				require.GreaterOrEqual(t, g.inFlight, young(maxAge))
				require.LessOrEqual(t, g.inFlight, young(maxAge+time.Second))
			},
		})
	})
}

// Those that leak or end late never raise the limit for the others, which are counted here.
func TestMaxAgeKeepsTheLimitUnderConcurrency(t *testing.T) {
	t.Parallel()
	const limit, maxAge, callers = 8, 32 * time.Millisecond, 16
	r := isolation.Rule{Resource: "r", Limit: limit, MaxAge: maxAge}
	l := newLimiter(t, r)
	var live, most, passed, ended atomic.Int64
	var mu sync.RWMutex // of the clock, which stands still while a call is under way that ends in time
	now := epoch
	call := func(late *[]rule.Ticket, leaks bool) {
		mu.RLock()
		defer mu.RUnlock()
		ticket, decision := l.Acquire(rule.Call{Now: now, Tokens: 1})
		if decision != rule.Pass {
			return
		}
		passed.Add(1)
		if leaks {
			*late = append(*late, ticket)
			return
		}
		n := live.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		live.Add(-1)
		l.Done(ticket, rule.Exit{Now: now})
		ended.Add(1)
		if len(*late) > 2 { // they are ended late, but for the last ones
			l.Done((*late)[0], rule.Exit{Now: now})
			*late = (*late)[1:]
			ended.Add(1)
		}
	}
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			var late []rule.Ticket
			for range 10_000 {
				call(&late, random.IntN(50) == 0)
				mu.Lock()
				now = now.Add(time.Duration(random.IntN(100)) * time.Microsecond)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	assert.LessOrEqual(t, most.Load(), int64(limit))
	end := now.Add(2 * maxAge)
	require.Equal(t, 0, gaugesOf(l, end).inFlight)
	_, expired := aged(l, end)
	assert.GreaterOrEqual(t, int64(expired), passed.Load()-ended.Load(), "those that never ended")
	for range limit {
		pass(t, l, end)
	}
	_, decision := l.Acquire(rule.Call{Now: end, Tokens: 1})
	assert.Equal(t, rule.Block, decision)
}
