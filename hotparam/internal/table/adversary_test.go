package table

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/longtest"
)

// taker takes a token of a value from a table of some kind, with a limit of five in five
// minutes.
type taker func(value uint64, now clock.Instant) bool

const loginWindow = 5 * time.Minute

func takers(values int) map[string]taker {
	rates := mustCompile(1, TokenBucket, Limit{Limit: 5, Window: loginWindow, Burst: 5})
	buckets := NewBuckets(values, rates)
	terms := CompileWindow(1, loginWindow)
	windows := NewWindows(values, terms)
	throttle := mustCompile(1, Throttle, Limit{Limit: 5, Window: loginWindow})
	turns := NewBuckets(values, throttle)
	return map[string]taker{
		"token bucket": func(v uint64, now clock.Instant) bool {
			_, o := buckets.Take(hashOf(v), rates.Class(0), now, 1)
			return o == Taken
		},
		"throttle": func(v uint64, now clock.Instant) bool {
			_, _, o := turns.Reserve(hashOf(v), throttle.Class(0), now, 1)
			return o == Taken
		},
		"window": func(v uint64, now clock.Instant) bool {
			_, o := windows.Take(hashOf(v), terms, 5, now, 1)
			return o == Taken
		},
	}
}

// account is an exact reference for one value, in whole nanoseconds.
type account struct {
	fullAt clock.Instant // token bucket: when it is full; throttle: when the next call passes
	passed []clock.Instant
}

// may says whether the account may take a token.
func (a *account) may(kind string, now clock.Instant) bool {
	switch kind {
	case "token bucket":
		return max(a.fullAt, now).Sub(now) <= loginWindow*4/5
	case "throttle":
		return a.fullAt <= now
	}
	terms, used := CompileWindow(1, loginWindow), 0
	for _, at := range a.passed {
		if terms.number(now)-terms.number(at) < windowBuckets {
			used++
		}
	}
	return used < 5
}

func (a *account) take(now clock.Instant) {
	a.fullAt = max(a.fullAt, now).Add(loginWindow / 5)
	a.passed = append(a.passed, now)
}

// An attacker cycles through three times more accounts than there are slots and tries each
// five times. No account gets more than it would alone, and all of them together no more
// than the limit allows.
func TestCyclingThroughAccountsGainsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for kind, take := range takers(20_000) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const accounts, tries, rounds = 60_000, 5, 3
			passed, may := 0, 0
			alone := make([]account, accounts)  // with all passes it would get if it were alone
			really := make([]account, accounts) // with the passes it got
			now := start
			for range rounds {
				for a := range uint64(accounts) {
					for range tries {
						now = now.Add(500 * time.Microsecond)
						if alone[a].may(kind, now) {
							alone[a].take(now)
							may++
						}
						if take(a, now) {
							require.True(t, really[a].may(kind, now), "account %d got more than its limit", a)
							really[a].take(now)
							passed++
						}
					}
				}
			}
			t.Logf("%s: %d of %d, %.2f ×", kind, passed, may, float64(passed)/float64(may))
			assert.LessOrEqual(t, passed, may)
			assert.Greater(t, passed, may/10)
		})
	}
}

// Values are busy in 95 of 100 slots. Of the calls of those that keep to the limit, no more
// than one in a thousand is refused.
func TestNearlyFullTableRefusesNobodyWrongly(t *testing.T) {
	const slots = 20_000
	for kind, take := range takers(slots * 9 / 10) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			values, now := uint64(slots*95/100), start
			refused, calls := 0, 0
			// Each comes five times in a window: it is as new just before the next call.
			step := loginWindow / 5 / time.Duration(values) * 101 / 100
			for range 12 {
				for v := range values {
					now = now.Add(step)
					calls++
					if !take(v, now) {
						refused++
					}
				}
			}
			t.Logf("%s: %d of %d", kind, refused, calls)
			assert.LessOrEqual(t, refused, calls/1000)
		})
	}
}

// Ten times more values than there are slots use all they may, at ten times the speed that
// keeps all slots busy. Values that come once in a window lose nothing: they keep their
// slots, also when they are as new in between, over changes of the rule too.
func TestValuesThatComeOnceInAWindowLoseNothingToMany(t *testing.T) {
	const slots, steady, tries = 1000, 100, 5
	limit := Limit{Limit: tries, Window: loginWindow, Burst: tries}
	for name, change := range map[string]func(*Limit, int){
		"same rule": nil,
		"other burst and limit": func(l *Limit, i int) {
			l.Burst = float64(tries + i%2)
			l.Limit = float64(tries + i%3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rates := mustCompile(1, TokenBucket, limit)
			b := NewBuckets(slots, rates)
			step := loginWindow / slots / tries / 10
			now, other, window := start, uint64(0), 0
			for i := range int(8 * loginWindow / step) {
				now = now.Add(step)
				if next := int(now.Sub(start) / loginWindow); next > max(3, window) && change != nil {
					window = next
					changed := limit
					change(&changed, window)
					rates = mustCompile(uint64(window)+1, TokenBucket, changed)
					b.Activate(rates, now)
				}
				if every := int(loginWindow/step) / steady; i%every == 0 {
					_, outcome := b.Take(hashOf(1<<40+uint64(i/every%steady)), rates.Class(0), now, 1)
					require.Equal(t, Taken, outcome, "window %d", time.Duration(i)*step/loginWindow)
				}
				if now.Sub(start) > 3*loginWindow {
					b.Take(hashOf(other/tries%(10*slots)), rates.Class(0), now, 1)
					other++
				}
			}
			require.Positive(t, b.Stats(now).WithoutSlot)
		})
	}
}

// Millions of values come once each. Memory does not grow, and a value that keeps its state
// in the table loses nothing.
func TestEndlessNewValuesTakeNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	rates := mustCompile(1, TokenBucket, perSecond(1, 1))
	b := NewBuckets(10_000, rates)
	terms := CompileWindow(1, time.Second)
	w := NewWindows(10_000, terms)
	c := NewConcurrency(10_000, 1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	distinct := longtest.Of[uint64](300_000, 1_000_000)
	if *distinctValues > 0 {
		distinct = *distinctValues
	}
	now, seen := start, 0
	for v := range distinct {
		now = now.Add(time.Microsecond * 50)
		hash := hashOf(v)
		b.Take(hash, rates.Class(0), now, 1)
		w.Take(hash, terms, 1, now, 1)
		p, outcome := c.Acquire(hash, 1, 1, NoSource)
		if outcome != Taken {
			t.Fatal("a value without a call under way was refused")
		}
		c.Release(p)
		if v%100_000 == 0 {
			seen = max(seen, b.Stats(now).Occupied)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<18))
	runtime.KeepAlive(b)
	runtime.KeepAlive(w)
	runtime.KeepAlive(c)
	assert.LessOrEqual(t, seen, b.Stats(now).Capacity)
	assert.NotZero(t, b.Stats(now).WithoutSlot)
}

// Instants wrap around in a word every few hours, or every few seconds at a fine
// resolution. Values stay apart from those of before, also after long times without a call.
func TestInstantsWrapAroundUnnoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for name, limit := range map[string]Limit{
		"nanoseconds": perSecond(10, 10),
		"fine":        {Limit: 997, Window: time.Second, Burst: 10},
		"coarse":      {Limit: 7, Window: 24 * time.Hour, Burst: 7},
	} {
		t.Run(name, func(t *testing.T) {
			rates := mustCompile(1, TokenBucket, limit)
			r := rates.Class(0)
			b := NewBuckets(2000, rates)
			random := rand.New(rand.NewPCG(1, 2))
			values := make([]reference, 1500)
			now := clock.Instant(0)
			around := clock.Instant(r.toTime.timesUp(1 << r.timeBits))
			for range longtest.Of(30_000, 60_000) {
				switch random.IntN(2000) {
				case 0: // nearly a whole number of times around: what was used must not come back
					now += around*clock.Instant(random.IntN(20)) + clock.Instant(random.IntN(int(limit.Window/100)))
				case 1:
					now += clock.Instant(random.Int64N(int64(around)))
				default:
					now += clock.Instant(random.Int64N(int64(limit.Window) / 500))
				}
				v := random.IntN(len(values))
				if values[v].limit = limit; !rates.Exact() && tooClose(&values[v], rates, now, 1) {
					continue
				}
				_, outcome := b.Take(hashOf(uint64(v)), r, now, 1)
				require.Equal(t, values[v].take(now, 1), outcome == Taken)
			}
			require.Greater(t, now, 100*around)
		})
	}
}
