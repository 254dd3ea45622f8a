package sharing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

const beginning = 4 * time.Second // of outages

// overloaded is a fleet of eight in overload by the factor two, for so long.
func overloaded(seed uint64, mode fleet.Mode, onOutage fleet.OnOutage, isSkewed bool) *world {
	w := newWorld(seed, 2*ms)
	rates := even(8, 2000)
	if isSkewed {
		rates = skewed(8, 2000)
	}
	w.join(bucketOf(1000), mode, onOutage, rates...)
	w.run(beginning)
	return w
}

// rate is the share of the limit of 1000 a second that passes between two times.
func (w *world) rate(from, to time.Duration) float64 {
	passes, _ := w.total(from, to)
	return float64(passes) / 1000 / (to - from).Seconds()
}

// assertReconverges checks that the limit holds again half a second after the end of an
// outage.
func (w *world) assertReconverges(t *testing.T, back time.Duration) {
	t.Helper()
	w.run(3 * time.Second)
	assert.InDelta(t, 1, w.rate(back+500*ms, back+2*time.Second), 0.1)
	assert.InDelta(t, 1, w.rate(back+2*time.Second, back+3*time.Second), 0.1)
}

// assertLogged checks that so many instances have logged the beginning of an outage and its
// end, in one line each.
func (w *world) assertLogged(t *testing.T, instances int) {
	t.Helper()
	log := w.log.String()
	assert.Equal(t, instances, strings.Count(log, "does not answer, limits go on as their onOutage says"))
	assert.Equal(t, instances, strings.Count(log, "answers again"))
	assert.Equal(t, 2*instances, strings.Count(log, "\n"))
}

func TestKilledBackendRestartedEmpty(t *testing.T) {
	t.Parallel()
	// A window may have passed more than its average in the last part of a second before.
	worst := map[fleet.Mode]int{fleet.ModeLease: 1130, fleet.ModeWindow: 1250}
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		for name, isSkewed := range map[string]bool{"even": false, "skewed": true} {
			t.Run(string(mode)+"/"+name, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(4) { // at other places of the bursts that a window repeats
					w := overloaded(8+seed, mode, fleet.OutageLast, isSkewed)
					w.isDown = true
					w.run(2 * time.Second)
					w.isDown = false
					w.store.Flush()
					back := beginning + 2*time.Second
					w.assertReconverges(t, back)
					assert.InDelta(t, 1, w.rate(beginning, back), 0.1, "the rate granted last")
					assert.LessOrEqual(t, w.rate(beginning, back+2*time.Second), 1+0.15/4, "0.15 s too many in all")
					assert.LessOrEqual(t, w.worst(3*time.Second, back+2*time.Second, time.Second, ms), worst[mode])
					w.assertLogged(t, 8)
				}
			})
		}
	}
}

// A backend that comes and goes twice a second is logged every ten seconds, with how often it was away, and an outage
// that lasts is logged though it begins between two lines.
func TestFlappingBackendIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	w := overloaded(13, fleet.ModeLease, fleet.OutageLast, false)
	for range 42 { // 21 s
		w.isDown = !w.isDown
		w.run(500 * ms)
	}
	log := w.log.String()
	assert.Equal(t, 3*8, strings.Count(log, "does not answer, limits go on as their onOutage says"), "at 4, 14 and 24 s")
	assert.LessOrEqual(t, strings.Count(log, "answers again"), 3*8)
	assert.Equal(t, 8, strings.Count(log, "outages=1\n"))
	assert.Equal(t, 2*8, strings.Count(log, "outages=10\n"))
	w.isDown = true
	w.run(11 * time.Second)
	assert.Equal(t, 4*8, strings.Count(w.log.String(), "does not answer, limits go on as their onOutage says"))
}

func TestPausedBackend(t *testing.T) {
	t.Parallel()
	w := overloaded(11, fleet.ModeLease, fleet.OutageLast, false)
	w.isPaused = true
	w.run(200 * ms)
	for _, i := range w.instances {
		s := i.member.Status(w.clock.Now())
		assert.False(t, s.Connected)
		assert.LessOrEqual(t, s.Since.Sub(w.start), beginning+exchange.DefaultTimeout+100*ms, "known within the timeout of the first request")
		assert.ErrorIs(t, s.Err, fleet.ErrUnavailable)
		assert.True(t, i.budget.Status(w.clock.Now()).Outage)
	}
	w.run(4800 * ms)
	w.resume()
	back := beginning + 5*time.Second
	w.assertReconverges(t, back)
	assert.InDelta(t, 1, w.rate(beginning, back), 0.1)
	assert.LessOrEqual(t, w.worst(3*time.Second, back+2*time.Second, time.Second, ms), 1200)
	w.assertLogged(t, 8)
}

func TestStoreThatLosesItsStateLearnsIt(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := overloaded(11, mode, fleet.OutageLast, false)
			w.store.Flush()
			w.run(2 * time.Second)
			passes, _ := w.total(beginning, beginning+2*time.Second)
			assert.LessOrEqual(t, passes, 2000+150, "its burst, and what was granted for later")
			assert.Empty(t, w.log.String())
		})
	}
}

func TestInstanceThatIsCutOffAddsItsShareAtMost(t *testing.T) {
	t.Parallel()
	w := overloaded(11, fleet.ModeLease, fleet.OutageLast, false)
	w.instances[0].isCut = true
	w.run(2 * time.Second)
	w.instances[0].isCut = false
	back := beginning + 2*time.Second
	w.assertReconverges(t, back)
	assert.LessOrEqual(t, w.rate(beginning, back), 1+1.5/8)
	w.assertLogged(t, 1)
}

func TestOnOutage(t *testing.T) {
	t.Parallel()
	for onOutage, want := range map[fleet.OnOutage][2]float64{
		fleet.OutageLast: {.9, 1.05}, fleet.OutageShare: {.9, 1.05},
		fleet.OutageOpen: {1.9, 2.1}, fleet.OutageClosed: {0, .04},
	} {
		t.Run(string(onOutage), func(t *testing.T) {
			t.Parallel()
			w := overloaded(11, fleet.ModeLease, onOutage, false)
			w.isDown = true
			w.run(2 * time.Second)
			w.isDown = false
			back := beginning + 2*time.Second
			rate := w.rate(beginning, back)
			assert.GreaterOrEqual(t, rate, want[0])
			assert.LessOrEqual(t, rate, want[1])
			w.run(4 * time.Second)
			assert.InDelta(t, 1, w.rate(back+2*time.Second, back+4*time.Second), 0.1)
		})
	}
}

// The share is that of the instances last known: also of those that begin while the backend
// does not answer, which know of none.
func TestInstanceThatNeverReachedTheBackendPassesNothing(t *testing.T) {
	t.Parallel()
	for _, onOutage := range []fleet.OnOutage{fleet.OutageLast, fleet.OutageShare} {
		w := newWorld(11, 2*ms)
		w.isDown = true
		w.join(bucketOf(1000), fleet.ModeLease, onOutage, 500)
		w.run(3 * time.Second)
		passes, _ := w.total(0, 3*time.Second)
		assert.LessOrEqual(t, passes, 5, "those before the outage is known")
		assert.EqualValues(t, 1, w.instances[0].member.Status(w.clock.Now()).Outages)
	}
}

// Calls do not come evenly: an instance that had all it asked for has it in an outage too.
func TestOutageAtHalfLoadRefusesHardlyAnything(t *testing.T) {
	t.Parallel()
	for name, rates := range map[string][]float64{"even": even(8, 500), "skewed": skewed(8, 500)} {
		for mode, refused := range map[fleet.Mode]float64{fleet.ModeLease: .03, fleet.ModeWindow: .05} {
			w := newWorld(11, 2*ms)
			w.join(bucketOf(1000), mode, fleet.OutageLast, rates...)
			w.run(beginning)
			w.isDown = true
			w.run(3 * time.Second)
			passes, calls := w.total(beginning, beginning+3*time.Second)
			assert.LessOrEqual(t, 1-float64(passes)/float64(calls), refused, "%s %s", mode, name)
		}
	}
}

// What passed is an average of a second. An outage soon after the first call finds it half
// grown, and yet as much passes as before.
func TestOutageSoonAfterTheStartPassesWhatPassedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(11, 2*ms)
	w.join(bucketOf(1000), fleet.ModeLease, fleet.OutageLast, even(8, 2000)...)
	const begin = 2 * time.Second // instances start within the first
	w.run(begin)
	w.isDown = true
	w.run(2 * time.Second)
	assert.InDelta(t, 1, w.rate(begin, begin+2*time.Second), 0.13)
}
