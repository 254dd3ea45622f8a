package clock

import "math"

// reading is the time at which a counter had a value.
type reading struct {
	ticks uint64
	at    Instant
	fake  bool // within testing/synctest: the counter says nothing of the time there
}

// line is the time as a function of a counter, for a period. It goes on from a reading of the
// system's clock, at the speed that the readings so far have shown. The next line begins with a new
// reading. It never changes.
//
// Lines that follow each other never go back: if a reading shows that the line before was ahead, the
// next one goes on from its end, and more slowly until the time has caught up.
type line struct {
	reading        // where it begins
	scale   uint64 // nanoseconds per tick, with scaleBits behind the point
	length  uint64 // ticks that it is for: a period, or 0 while the time is that of a bubble

	// How the next one begins.
	base, last reading // of the system's clock: since when the speed has been measured, and the last one
	speed      float64 // in nanoseconds per tick
}

const (
	// period is how many ticks a line is for: a millisecond at 2 GHz.
	period = 1 << 21

	scaleBits = 32
)

// newLine returns the line that begins with the second one of two readings.
func newLine(first, second reading) *line {
	return newLineAt(second.at, first, second, first.speedTo(second))
}

// newLineAt returns a line from the last reading on, which reaches the right time at its end.
func newLineAt(start Instant, base, last reading, speed float64) *line {
	ahead := float64(start - last.at)
	slowed := speed * max(0, 1-ahead/(period*speed))
	return &line{
		reading: reading{ticks: last.ticks, at: start}, scale: uint64(slowed * (1 << scaleBits)), length: period,
		base: base, last: last, speed: speed,
	}
}

// after returns the time so many ticks after the line begins, up to its length.
func (l *line) after(ticks uint64) Instant { return l.at + Instant(ticks*l.scale>>scaleBits) }

// next returns the line that follows, once this one has ended, for a new reading.
func (l *line) next(now reading) *line {
	end := l.after(l.length)
	if now.fake {
		return &line{reading: reading{ticks: now.ticks, at: max(now.at, end)}, base: now, last: now, speed: l.speed}
	}
	base, speed := l.base, l.base.speedTo(now)
	switch {
	case !l.last.hasSpeedTo(now): // the counter or the system's clock has jumped
		base, speed = now, l.speed
	case l.last.differs(now, l.speed): // one of them has another speed
		base, speed = l.last, l.last.speedTo(now)
	}
	return newLineAt(max(now.at, end), base, now, speed)
}

// speedTo returns how many nanoseconds a tick took from one reading to a later one.
func (r reading) speedTo(later reading) float64 {
	return float64(later.at-r.at) / float64(later.ticks-r.ticks)
}

// hasSpeedTo says whether a counter can have counted so, from one reading to a later one: with
// 0.4 to 10 GHz.
func (r reading) hasSpeedTo(later reading) bool {
	return r.ticks < later.ticks && r.at < later.at && r.speedTo(later) > 0.1 && r.speedTo(later) < 2.5
}

// differs says whether a later reading shows that a speed is not right: by more than the
// 500 millionths by which systems change theirs to adjust their time, twice, and by more than
// readings may be off.
func (r reading) differs(later reading, speed float64) bool {
	const (
		adjusted = 1e-3
		inexact  = 2000 // nanoseconds
	)
	took := float64(later.at - r.at)
	return math.Abs(took-float64(later.ticks-r.ticks)*speed) > took*adjusted+inexact
}
