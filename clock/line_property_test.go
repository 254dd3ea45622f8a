package clock

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// machine is a simulated machine, whose counter can do what counters should not.
type machine struct {
	line  *line
	now   float64 // true time, in nanoseconds
	ticks float64 // of the counter
	speed float64 // nanoseconds per tick
	noise float64 // what a reading of the system's clock is off by
	asked int     // how often the clock was read

	readings int     // since something odd happened
	caughtUp float64 // when time has caught up with that
}

func newMachine(speed float64) *machine {
	m := &machine{now: 1e15, ticks: 5e12, speed: speed}
	first := m.reading()
	m.pass(50_000)
	m.line = newLine(first, m.reading())
	return m
}

// pass lets time pass, in nanoseconds.
func (m *machine) pass(ns float64) {
	m.now += ns
	m.ticks += ns / m.speed
}

func (m *machine) reading() reading { return reading{ticks: m.counter(), at: Instant(m.now + m.noise)} }

func (m *machine) counter() uint64 { return uint64(m.ticks) }

// jump sets the counter, but not within a line, or just before one, where nobody would notice.
func (m *machine) jump(t *rapid.T, ticks float64) {
	if from := float64(m.line.ticks); ticks < 0 || from-skew <= ticks && ticks <= from+period {
		t.Skip("not there")
	}
	m.ticks = ticks
}

// read does what counterClock does.
func (m *machine) read() Instant {
	switch passed := m.counter() - m.line.ticks; {
	case passed < period:
		return m.line.after(passed)
	case -passed < skew:
		return m.line.at
	}
	m.asked++
	if m.readings++; m.readings < 3 {
		m.caughtUp = max(m.caughtUp, m.now) + 2.5*period // as far as a line can go too far
	}
	m.line = m.line.next(m.reading())
	return m.line.at
}

// off returns how far a reading is from the true time.
func (m *machine) off(now Instant) time.Duration {
	return time.Duration(math.Abs(float64(now) - m.now))
}

func TestTimeNeverGoesBackAndIsSoonRightWhateverTheCounterDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(rapid.Float64Range(0.15, 2).Draw(t, "speed"))
		last := m.read()
		look := func(t *rapid.T) {
			now := m.read()
			assert.GreaterOrEqual(t, now, last)
			if m.readings > 4 && m.now > m.caughtUp {
				assert.LessOrEqual(t, m.off(now), 10*time.Microsecond)
			}
			last = now
		}
		odd := func(t *rapid.T, change func(t *rapid.T)) {
			change(t)
			m.readings = 0
			look(t)
		}
		within := func(name string, low, high float64) func(t *rapid.T) float64 {
			return func(t *rapid.T) float64 { return rapid.Float64Range(low, high).Draw(t, name) }
		}
		t.Repeat(map[string]func(*rapid.T){
			"a short time passes": func(t *rapid.T) {
				for range 50 {
					m.pass(within("ns", 1, 2e5)(t))
					look(t)
				}
			},
			"a long time passes": func(t *rapid.T) {
				m.pass(within("ns", 1e6, 1e12)(t))
				look(t)
			},
			"readings are inexact": func(t *rapid.T) { m.noise = within("noise", -500, 500)(t) },
			"the system adjusts its time": func(t *rapid.T) {
				m.speed *= within("factor", 1-5e-5, 1+5e-5)(t)
			},
			"the counter changes its speed": func(t *rapid.T) {
				odd(t, func(t *rapid.T) { m.speed = within("speed", 0.15, 2)(t) })
			},
			"the counter jumps ahead":      func(t *rapid.T) { odd(t, func(t *rapid.T) { m.ticks += within("ticks", 0, 1e8)(t) }) },
			"the counter jumps back":       func(t *rapid.T) { odd(t, func(t *rapid.T) { m.jump(t, m.ticks-within("ticks", 0, 1e8)(t)) }) },
			"the counter begins anew":      func(t *rapid.T) { odd(t, func(t *rapid.T) { m.jump(t, 0) }) },
			"the machine stands still":     func(t *rapid.T) { odd(t, func(t *rapid.T) { m.now += within("ns", 0, 1e10)(t) }) },
			"the system's clock goes back": func(t *rapid.T) { odd(t, func(t *rapid.T) { m.now -= within("ns", 0, 1e6)(t) }) },
		})
	})
}

func TestTheSystemIsAskedOnceInAPeriod(t *testing.T) {
	t.Parallel()
	m := newMachine(0.5)
	begin := m.now
	for m.now-begin < 1e9 {
		m.pass(1000)
		m.read()
	}
	assert.InDelta(t, 1e9/(period*0.5), m.asked, 3)
}

func TestTimeIsRightWithinAMicrosecondWhileTheSystemAdjustsIts(t *testing.T) {
	t.Parallel()
	m := newMachine(0.38)
	worst := time.Duration(0)
	for range 100_000 {
		m.pass(10_000)
		m.speed *= 1 + 1e-8 // as fast as NTP lets a clock drift, in a second
		worst = max(worst, m.off(m.read()))
	}
	assert.Less(t, worst, time.Microsecond)
}

func TestTimeThatIsAheadSlowsDown(t *testing.T) {
	t.Parallel()
	m := newMachine(0.5)
	m.pass(period * 0.5)
	m.read()
	m.ticks += 100_000 // the clock is 50 microseconds ahead
	ahead := m.off(m.read())
	assert.InDelta(t, 50*time.Microsecond, ahead, 1000)
	last := m.read()
	for range 30 {
		m.pass(100_000)
		now := m.read()
		assert.Greater(t, now, last)
		last = now
	}
	assert.Less(t, m.off(last), time.Microsecond)
}
