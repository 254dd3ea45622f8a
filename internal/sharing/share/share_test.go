package share_test

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/share"
)

func perSecond(limit float64) fleet.Terms {
	return fleet.Terms{Limit: limit, Window: time.Second, Buckets: 10}
}

// joinSkewed has n instances join with demand that is overload times the limit, one of them
// with a fraction of it, and runs until they have their parts.
func (f *simulation) joinSkewed(n int, overload, fraction float64) {
	total := overload * f.terms.PerSecond()
	f.join(total * fraction)
	for range n - 1 {
		f.join(total * (1 - fraction) / float64(n-1))
	}
	f.run(5 * time.Second)
	f.worst()
}

func TestFleetPassesTheLimitUnderOverload(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit, even, skewed float64 // the least that passes
	}{{100, .95, .79}, {1000, .98, .94}, {100_000, .995, .98}} {
		for fraction, least := range map[float64]float64{.125: test.even, .9: test.skewed} {
			t.Run(fmt.Sprint(test.limit, fraction), func(t *testing.T) {
				t.Parallel()
				f := simulate(perSecond(test.limit), 1)
				f.joinSkewed(8, 2, fraction)
				passed := f.run(20 * time.Second)
				assert.GreaterOrEqual(t, passed, least)
				assert.LessOrEqual(t, passed, 1.01)
				anyWindow, aligned := f.worst()
				assert.LessOrEqual(t, aligned, 1+8/test.limit, "a fraction of a token of each instance")
				assert.LessOrEqual(t, anyWindow, 1.1)
				t.Logf("passed %.3f, any second %.3f, aligned %.3f", passed, anyWindow, aligned)
			})
		}
	}
}

func TestFleetBelowTheLimitRefusesNextToNothing(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(8, .8, .5)
	calls, passed := f.calls, f.passed
	f.run(20 * time.Second)
	refused := 1 - float64(f.passed-passed)/float64(f.calls-calls)
	assert.LessOrEqual(t, refused, .003)
	t.Logf("refused %.4f", refused)
}

// Whatever happens to announcements, and however demand moves: what instances may use
// together, and what passes in a window, is never above the limit.
func TestFleetNeverPassesMoreThanTheLimitWhileDemandMoves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.SampledFrom([]time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second}).Draw(t, "window")
		f := simulate(fleet.Terms{Limit: 5000, Window: window, Buckets: 10}, rapid.Uint64().Draw(t, "seed"))
		f.network = network{
			latency:   time.Duration(rapid.IntRange(0, 80).Draw(t, "latency, ms")) * time.Millisecond,
			lost:      rapid.SampledFrom([]float64{0, .01, .3}).Draw(t, "lost"),
			duplicate: rapid.SampledFrom([]float64{0, .2}).Draw(t, "duplicate"),
		}
		demand := rapid.SampledFrom([]float64{0, .01, .3, 3})
		for range rapid.IntRange(1, 12).Draw(t, "instances") {
			f.join(0)
		}
		for range rapid.IntRange(1, 10).Draw(t, "steps") {
			i := rapid.SampledFrom(f.instances).Draw(t, "instance")
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				f.join(demand.Draw(t, "demand") * f.terms.PerSecond())
			case 1:
				f.leave(i)
			case 2:
				f.network.down = !f.network.down
				f.knownSince = f.now.Add(fleet.AnnounceLife)
			case 3:
				f.restart()
			case 4:
				f.begins(demand.Draw(t, "demand") * f.terms.PerSecond())
			default:
				i.perSecond = demand.Draw(t, "demand") * f.terms.PerSecond()
			}
			f.run(time.Duration(rapid.IntRange(1, 2500).Draw(t, "time, ms")) * time.Millisecond)
		}
		require.LessOrEqual(t, f.most, 1+1e-9, "what all may use together")
		_, aligned := f.worst()
		fractions := float64(len(f.instances)) / f.terms.Limit // a token of each instance
		require.LessOrEqual(t, aligned, 1+4*share.StartPart+fractions, "and what they have at the start")
	})
}

func TestLowLimitsAreFractionsOfTokens(t *testing.T) {
	t.Parallel()
	f := simulate(fleet.Terms{Limit: 3, Window: time.Second, Burst: 1}, 1)
	f.joinSkewed(8, 50, .125)
	f.run(10 * time.Second)
	assert.InDelta(t, 1, f.run(100*time.Second), .03)
}

func TestInstanceThatJoinsGetsItsPart(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(4, 2, .25)
	joined := f.join(500)
	assert.InDelta(t, 10, joined.Limit(), 0, "before the first answer")
	f.run(200 * time.Millisecond)
	assert.InDelta(t, 2, joined.Limit(), .1, "while the others have all of it")
	f.run(3300 * time.Millisecond)
	assert.InDelta(t, 200, joined.Limit(), 5)
	_, aligned := f.worst()
	assert.LessOrEqual(t, aligned, 1.02)
}

func TestLimitThatIsNewToAFleetIsDividedAtOnce(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.now = at(2)
	for range 4 {
		f.known[strconv.Itoa(len(f.known))] = &entry{ends: f.now.Add(fleet.AnnounceLife)} // it has announced other limits
	}
	for range 4 {
		f.begins(500)
	}
	f.run(20 * time.Millisecond)
	for _, i := range f.instances {
		assert.InDelta(t, 250, i.Limit(), 1e-6)
	}
	assert.InDelta(t, 1, f.run(3*time.Second), .02)
	joined := f.begins(500)
	f.run(20 * time.Millisecond)
	assert.InDelta(t, 2, joined.Limit(), .1, "as the others have all of it")
	_, aligned := f.worst()
	assert.LessOrEqual(t, aligned, 1.006)
}

// A fleet of which an instance does not know everybody has not all of a limit free that it sees to be so.
func TestLimitIsNotDividedAtOnceWhenTheBackendHasLostWhatItKnew(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(4, 2, .25)
	begins := f.begins(500)
	f.restart() // it is the first to be announced after that
	f.run(30 * time.Millisecond)
	assert.LessOrEqual(t, begins.Limit(), 10.0)
	f.run(5 * time.Second)
	assert.InDelta(t, 200, begins.Limit(), 5)
	_, aligned := f.worst()
	assert.LessOrEqual(t, aligned, 1.02)
}

// What has passed in the window by way of an instance that has left is not free yet.
func TestLimitIsNotDividedAtOnceWhenAnInstanceHasJustLeft(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(1, 2, 1)
	f.known["idle"] = &entry{ends: f.now.Add(fleet.AnnounceLife)}
	f.knownSince = 0
	begins := f.begins(2000)
	f.leave(f.instances[0])
	f.run(500 * time.Millisecond)
	later := f.begins(0)
	f.run(500 * time.Millisecond)
	assert.LessOrEqual(t, begins.Limit(), 10.0)
	assert.LessOrEqual(t, later.Limit(), 10.0)
	f.leave(later)
	_, aligned := f.worst()
	assert.LessOrEqual(t, aligned, 1.02)
	f.run(3 * time.Second)
	assert.InDelta(t, 1000, begins.Limit(), 1e-6)
}

func TestOthersTakeOverWhatAnInstanceLeaves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end    func(*simulation, *simulated)
		before time.Duration
		within time.Duration
	}{
		"left": {(*simulation).leave, time.Second, 4 * time.Second},
		"died": {func(_ *simulation, i *simulated) { i.gone = true }, fleet.AnnounceLife, fleet.AnnounceLife + 4*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := simulate(perSecond(1000), 1)
			f.joinSkewed(4, 2, .25)
			test.end(f, f.instances[0])
			f.run(test.before)
			assert.InDelta(t, 250, f.instances[1].Limit(), 1)
			f.run(test.within - test.before)
			assert.InDelta(t, 333, f.instances[1].Limit(), 5)
			_, aligned := f.worst()
			assert.LessOrEqual(t, aligned, 1.003, "a fraction of a token of each instance")
		})
	}
}

func TestDemandThatMovesIsFollowed(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(8, 2, .9)
	a, b := f.instances[0], f.instances[5]
	assert.Greater(t, a.Limit(), 700.0)
	a.perSecond, b.perSecond = b.perSecond, a.perSecond
	f.run(4 * time.Second)
	assert.Greater(t, b.Limit(), 500.0)
	f.run(4 * time.Second)
	assert.GreaterOrEqual(t, f.run(10*time.Second), .94)
	_, aligned := f.worst()
	assert.LessOrEqual(t, aligned, 1.0)
}

func TestOutageWhileTheBackendDoesNotAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	for onOutage, parts := range map[fleet.OnOutage][2]float64{
		fleet.OutageLast: {.75, .25}, fleet.OutageShare: {.5, .5}, fleet.OutageOpen: {1e300, 1e300}, fleet.OutageClosed: {0, 0},
	} {
		t.Run(string(onOutage), func(t *testing.T) {
			t.Parallel()
			f := simulate(perSecond(100_000), 1)
			a, b := f.join(4e5), f.join(23_500)
			a.Change(f.terms, onOutage, f.now)
			b.Change(f.terms, onOutage, f.now)
			f.run(5 * time.Second)
			f.worst()
			f.network.down = true
			f.run(1500 * time.Millisecond)
			for k, i := range []*simulated{a, b} {
				status := i.Status(f.now)
				assert.True(t, status.Outage)
				assert.Positive(t, status.Since)
				assert.Equal(t, onOutage, status.OnOutage)
				assert.InDelta(t, parts[k], min(i.Limit()/1e5, 1e300), .01)
			}
			f.run(8 * time.Second)
			f.network.down = false
			f.run(1500 * time.Millisecond)
			f.worst()
			f.run(5 * time.Second)
			assert.False(t, a.Status(f.now).Outage)
			assert.InDelta(t, 1, f.grants(), .02)
			_, aligned := f.worst()
			assert.LessOrEqual(t, aligned, 1.001)
		})
	}
}

func TestBackendThatLostAllChangesNothing(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(8, 2, .125)
	f.network.down = true
	f.run(3 * time.Second)
	f.restart()
	f.network.down = false
	assert.GreaterOrEqual(t, f.run(5*time.Second), .97)
	anyWindow, aligned := f.worst()
	assert.LessOrEqual(t, aligned, 1.0)
	assert.LessOrEqual(t, anyWindow, 1.05)
}

// An instance that is cut off keeps its part, the others take it over when it counts as gone:
// meanwhile one part too many passes, and not when it is back.
func TestInstanceThatWasCutOffComesBackWithoutExcess(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(4, 2, .25)
	f.instances[0].cut = true
	f.run(15 * time.Second)
	_, aligned := f.worst()
	assert.InDelta(t, 1.25, aligned, .02)
	f.instances[0].cut = false
	f.run(time.Second)
	f.worst()
	f.run(5 * time.Second)
	_, aligned = f.worst()
	assert.LessOrEqual(t, aligned, 1.01)
	assert.InDelta(t, 250, f.instances[0].Limit(), 5)
}

// newShare returns a share of a limit of 1000 a second in a fleet that is played by hand.
func newShare(t *testing.T) *share.Share {
	t.Helper()
	return simulate(perSecond(1000), 1).join(0).Share
}

// with returns a fleet of instance "0", which has announced a use, and another one.
func with(own, other fleet.Use) fleet.Fleet {
	own.Key, other.Key = "flow/partner", "flow/partner"
	return fleet.Fleet{Count: 2, Instances: []fleet.Instance{{ID: "0", Limits: []fleet.Use{own}}, {ID: "1", Limits: []fleet.Use{{Key: "flow/else"}, other}}}}
}

// at is an instant of a fleet that is played by hand.
func at(seconds float64) clock.Instant { return clock.Instant(seconds * 1e9) }

func TestShareIsNotRaisedAboveWhatIsReserved(t *testing.T) {
	t.Parallel()
	s := newShare(t)
	answer := func(seconds float64, own, other fleet.Use) time.Duration {
		own.Reserved = s.Use(at(seconds)).Reserved
		return s.Divide(at(seconds), "0", with(own, other))
	}
	busy := fleet.Use{Demand: 5000}
	assert.Equal(t, exchange.AnnounceInterval, answer(1, busy, fleet.Use{Demand: 5000, Reserved: 1}))
	assert.InDelta(t, 5, s.Limit(), 1e-9)
	assert.Equal(t, exchange.AnnounceInterval/2, answer(2, busy, fleet.Use{Demand: 5000}))
	assert.InDelta(t, 5, s.Limit(), 1e-9, "others may not have announced themselves yet")
	assert.Equal(t, share.Soon, answer(3, busy, fleet.Use{Demand: 5000}))
	assert.InDelta(t, 5, s.Limit(), 1e-9, "it has reserved nothing yet")
	assert.Equal(t, 5*share.Soon, answer(3.1, busy, fleet.Use{Demand: 5000, Reserved: 1}), "it looks again before long")
	assert.InDelta(t, 5, s.Limit(), 1e-9, "the other one has not made room")
	answer(4, busy, fleet.Use{Demand: 5000, Reserved: .8})
	assert.InDelta(t, 200, s.Limit(), 1e-6)
	assert.Equal(t, exchange.AnnounceInterval, answer(5, busy, fleet.Use{Demand: 5000, Reserved: .5}))
	assert.InDelta(t, 500, s.Limit(), 1e-6)
	answer(6, busy, fleet.Use{Demand: 5000, Reserved: 1})
	assert.InDelta(t, 500, s.Limit(), 1e-6, "what the others wish for takes nothing away")
}

// An instance that takes what is free and leaves before others look again has used it in this window.
func TestWhatAnInstanceMayHaveTakenBeforeItLeftIsNotFree(t *testing.T) {
	t.Parallel()
	s := newShare(t)
	answer := func(seconds float64, f fleet.Fleet) {
		f.Instances[0].Limits[0].Reserved = s.Use(at(seconds)).Reserved
		s.Divide(at(seconds), "0", f)
	}
	busy := fleet.Use{Demand: 5000}
	for seconds := range 5 {
		answer(float64(1+seconds), with(busy, busy))
	}
	require.InDelta(t, 500, s.Limit(), 1e-6)
	for _, seconds := range []float64{6, 6.5, 7, 7.4} {
		alone := with(busy, busy)
		alone.Count, alone.Instances = 1, alone.Instances[:1]
		answer(seconds, alone)
		assert.InDelta(t, 500, s.Limit(), 1e-6, "the other one may have taken a half at 5.9 s")
	}
	alone := with(busy, busy)
	alone.Count, alone.Instances = 1, alone.Instances[:1]
	answer(7.5, alone)
	assert.InDelta(t, 1000, s.Limit(), 1e-6, "and that has left the window")
}

// The backend may know an older announcement, or one that had no answer may reach it late.
func TestShareIsNotRaisedAboveWhatTheBackendMayKnow(t *testing.T) {
	t.Parallel()
	s := newShare(t)
	answer := func(seconds, known, othersDemand float64) {
		reserved := s.Use(at(seconds)).Reserved
		own := fleet.Use{Demand: 5000, Reserved: min(known, reserved)}
		s.Divide(at(seconds), "0", with(own, fleet.Use{Demand: othersDemand, Reserved: .1}))
	}
	for seconds := range 3 {
		answer(float64(1+seconds), 1, 5000)
	}
	answer(4, .3, 5000)
	assert.InDelta(t, 300, s.Limit(), 1e-6, "it knows an older announcement")
	answer(5, 1, 5000)
	assert.InDelta(t, 500, s.Limit(), 1e-6)

	s.Use(at(5.5)) // reserves a half, and has no answer
	answer(5.6, 1, 0)
	answer(6.5, 1, 0)
	assert.InDelta(t, 500, s.Limit(), 1e-6, "that may still reach the backend")
	answer(7.5, 1, 0)
	assert.Greater(t, s.Limit(), 800.0)
}

func TestShareKeepsReservedWhatHasPassedInTheWindow(t *testing.T) {
	t.Parallel()
	s := newShare(t)
	answer := func(seconds, demand float64) {
		reserved := s.Use(at(seconds)).Reserved
		s.Divide(at(seconds), "0", with(fleet.Use{Demand: demand, Reserved: reserved}, fleet.Use{Demand: 5000}))
	}
	for seconds := range 5 {
		answer(float64(1+seconds), 5000)
	}
	require.InDelta(t, 500, s.Limit(), 1e-6)
	s.Count(at(5.1), 400, true)
	s.Count(at(5.1), 100, true)
	s.Count(at(5.1), -100, true)
	answer(5.5, 0)
	assert.InDelta(t, 25, s.Limit(), 1e-6, "it is lowered at once")
	assert.InDelta(t, .4, s.Use(at(6)).Reserved, 1e-6)
	assert.InDelta(t, .025, s.Use(at(6.6)).Reserved, 1e-6)
}

func TestShareThatIsNotAnnouncedHasNoPart(t *testing.T) {
	t.Parallel()
	s := newShare(t)
	s.Use(at(1))
	s.Divide(at(1), "0", fleet.Fleet{Count: 1, Instances: []fleet.Instance{{ID: "0"}}})
	assert.InDelta(t, 10, s.Limit(), 1e-9)
	assert.ErrorContains(t, s.Status(at(1)).Err, "at most 100 limits")
}

func TestMoreSharesThanAnInstanceAnnouncesAreAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	m := sharing.NewMember(fleet.Config{Manual: true}, clock.NewVirtual(time.Unix(0, 0)), slog.New(slog.NewTextHandler(&log, nil)), 1)
	var shares []*share.Share
	for i := range fleet.MaxUses + 1 {
		shares = append(shares, m.NewShare(fleet.Terms{Key: fmt.Sprintf("flow/%d", i), Limit: 1000, Window: time.Second}, fleet.OutageLast, at(0)))
	}
	require.NoError(t, shares[fleet.MaxUses-1].Status(at(0)).Err)
	require.ErrorContains(t, shares[fleet.MaxUses].Status(at(0)).Err, `limit "flow/100" passes next to nothing: an instance announces at most 100 limits`)
	assert.Equal(t, 1, strings.Count(log.String(), "a limit is not shared by the fleet"))
}

func TestNumbersOfOthersThatAreNoneTakeNothing(t *testing.T) {
	t.Parallel()
	nan := func() float64 { var zero float64; return zero / zero }()
	for _, demand := range []float64{nan, -1, 1e308} {
		for _, reserved := range []float64{nan, -1, 1e308} {
			s := newShare(t)
			for seconds := range 4 {
				own := fleet.Use{Demand: 5000, Reserved: s.Use(at(float64(1 + seconds))).Reserved}
				s.Divide(at(float64(1+seconds)), "0", with(own, fleet.Use{Demand: demand, Reserved: reserved}))
			}
			limit := s.Limit()
			assert.True(t, limit >= 0 && limit <= 1000, "%v of %v, %v", limit, demand, reserved)
		}
	}
}

func TestShareOfALimitThatChanges(t *testing.T) {
	t.Parallel()
	f := simulate(perSecond(1000), 1)
	f.joinSkewed(2, 2, .5)
	i := f.instances[0]
	require.InDelta(t, 500, i.Limit(), 1)
	terms := f.terms
	terms.Limit = 10
	i.Change(terms, fleet.OutageLast, f.now)
	assert.InDelta(t, 5, i.Limit(), .01)
	terms.Limit = 0
	i.Change(terms, fleet.OutageLast, f.now)
	assert.Zero(t, i.Limit())
	f.run(5 * time.Second)
	assert.Zero(t, i.Limit())
}

func TestShareIsIdleWhenNothingWasAskedOfLate(t *testing.T) {
	t.Parallel()
	s := newShare(t)
	assert.False(t, s.Idle(at(5)))
	assert.True(t, s.Idle(at(11)))
	s.Count(at(11), 1, false)
	assert.False(t, s.Idle(at(11)))
	s.Use(at(12))
	assert.False(t, s.Idle(at(20)))
	assert.True(t, s.Idle(at(23)))
}

func TestShareCountsWithoutAllocations(t *testing.T) {
	s := newShare(t)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s.Count(at(1), 1, s.Limit() > 1)
	}))
}
