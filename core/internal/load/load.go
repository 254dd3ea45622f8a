// Package load follows how loaded a resource is.
package load

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// The load follows what is measured by these time constants: it is soon up, as overload is, and down
// later, so that a load that comes and goes does not have handlers change all the time.
const (
	// Every is how often a load is measured at the most.
	Every = 100 * time.Millisecond

	rises = time.Second
	falls = 5 * time.Second

	waits         = 1.25 // while calls wait
	refuses       = 2    // while a share of the calls is refused of at least
	refusingShare = 0.01
)

// Source is what a load is measured of.
type Source interface {
	// Places returns which share of the places is taken at an instant, and whether calls wait for one.
	Places(now clock.Instant) (taken float64, waiting bool)

	// Counted returns how many calls have passed, and how many were refused for want of a place.
	Counted() (passed, refused uint64)
}

// Level says how loaded a service is.
type Level = rule.LoadLevel

// steps are the loads at which the next level begins, and below which it ends. They are apart, so that
// a load near one of them keeps its level.
func steps() [rule.LoadShedding]struct{ begins, ends float64 } {
	return [...]struct{ begins, ends float64 }{{0.7, 0.6}, {0.9, 0.8}, {1.1, 1.05}, {1.5, 1.35}}
}

// Meter follows the load of a resource.
type Meter struct {
	word        atomic.Uint64 // the level in three bits, and above them the microsecond until which it is taken as it is
	utilization atomic.Uint64 // the bits of the load
	rate        atomic.Uint64 // the bits of how many calls pass in a second
	asked       atomic.Int64  // when a guard was last asked, or up to 100 ms before

	mu       sync.Mutex // guards what follows
	measured clock.Instant
	passed   uint64 // up to then
	refused  uint64
}

const (
	levelBits = 3
	levelMask = 1<<levelBits - 1
)

func microsecond(at clock.Instant) uint64 { return uint64(max(int64(at)/int64(time.Microsecond), 0)) }

// NewMeter returns a meter that begins at an instant.
func NewMeter(of Source, now clock.Instant) *Meter {
	m := &Meter{measured: now}
	m.passed, m.refused = of.Counted()
	return m
}

// Present returns the load at an instant, and how many calls pass in a second.
func (m *Meter) Present(of Source, now clock.Instant) (level Level, utilization, rate float64) {
	m.measure(of, now)
	return m.level(), math.Float64frombits(m.utilization.Load()), math.Float64frombits(m.rate.Load())
}

// WasAsked says whether a guard was asked in the minute before an instant.
func (m *Meter) WasAsked(now clock.Instant) bool {
	return now.Sub(clock.Instant(m.asked.Load())) <= time.Minute
}

func (m *Meter) level() Level { return Level(m.word.Load() & levelMask) }

// At returns the level at an instant, for a guard that asks.
func (m *Meter) At(of Source, now clock.Instant) Level {
	word := m.word.Load()
	if microsecond(now) < word>>levelBits {
		return Level(word & levelMask)
	}
	m.asked.Store(int64(now))
	m.measure(of, now)
	return m.level()
}

// measure brings the load up to date, unless it is or another goroutine does.
func (m *Meter) measure(of Source, now clock.Instant) {
	if microsecond(now) < m.word.Load()>>levelBits || !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	elapsed := now.Sub(m.measured)
	if elapsed <= 0 {
		return
	}
	value, passed := m.present(of, now)
	load := m.follow(value, elapsed)
	m.measured = now
	m.utilization.Store(math.Float64bits(load))
	m.rate.Store(math.Float64bits(between(passed/elapsed.Seconds(), math.Float64frombits(m.rate.Load()), elapsed, falls)))
	m.word.Store(microsecond(now.Add(Every))<<levelBits | uint64(levelOf(load, m.level())))
}

// follow returns the load once it was at a value for a time.
func (m *Meter) follow(value float64, elapsed time.Duration) float64 {
	load, constant := math.Float64frombits(m.utilization.Load()), falls
	if value > load {
		constant = rises
	}
	return between(value, load, elapsed, constant)
}

// between returns where what follows a value with a time constant is that was at another one before.
func between(value, before float64, elapsed, constant time.Duration) float64 {
	return value + (before-value)*math.Exp(-elapsed.Seconds()/constant.Seconds())
}

// levelOf returns the level of a load that had a level before.
func levelOf(load float64, before Level) (level Level) {
	for i, step := range steps() {
		if load >= step.begins || load >= step.ends && before > Level(i) {
			level = Level(i + 1)
		}
	}
	return level
}

// present returns the load at this instant, and how many calls have passed since it was called last. The
// caller holds m.mu.
func (m *Meter) present(of Source, now clock.Instant) (load, passes float64) {
	taken, waiting := of.Places(now)
	if taken > 0 { // no NaN, which it would never get rid of
		load = min(taken, 1)
	}
	if waiting {
		load = max(load, waits)
	}
	passed, refused := of.Counted()
	more := refused - min(m.refused, refused) // fewer if rules are gone
	passes = float64(passed - min(m.passed, passed))
	if more > 0 {
		share := min(float64(more)/(float64(more)+passes)/refusingShare, 1)
		load = max(load, waits+(refuses-waits)*share)
	}
	m.passed, m.refused = passed, refused
	return load, passes
}
