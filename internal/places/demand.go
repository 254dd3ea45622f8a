package places

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// demand is how many places calls want, and did of late.
type demand struct {
	use   Use           // the last
	until clock.Instant // when the present window ends
	peaks [2]int64      // calls under way at most in the present window and in the one before

	period  clock.Instant // when the present period ends
	highest [2]int64      // the most wanted in the present period and in the one before
	missed  [2]int64      // calls refused in them
	called  clock.Instant // when calls were under way, waited or were refused last
}

// rests is how long after the last call a holder keeps a place for the next one.
const rests = 10 * time.Second

func newDemand(now clock.Instant) demand {
	return demand{until: now.Add(window), period: now.Add(heartbeat), called: now}
}

func (d *demand) add(now clock.Instant, use Use) {
	d.use = use
	peak := max(use.Peak, use.InUse)
	if d.peaks[0] = max(d.peaks[0], peak); now >= d.until {
		d.peaks = [2]int64{use.InUse, d.peaks[0]}
		if now >= d.until.Add(window) {
			d.peaks[1] = peak
		}
		d.until = now.Add(window)
	}
	d.highest[0] = max(d.highest[0], peak)
	d.missed[0] += use.Missed
	if now >= d.period {
		if now >= d.period.Add(heartbeat) {
			d.highest[0], d.missed[0] = peak, use.Missed
		}
		d.highest = [2]int64{use.InUse, d.highest[0]}
		d.missed = [2]int64{0, d.missed[0]}
		d.period = now.Add(heartbeat)
	}
	if peak+use.Waiting+use.Missed > 0 {
		d.called = now
	}
}

// now is how many places calls want. Of those that were refused nobody knows how many would be
// under way at once: no more than twice as many as are is believed at a time.
func (d *demand) now(clock.Instant) int64 {
	busy := max(d.peaks[0], d.peaks[1])
	return busy + d.use.Waiting + min(max(d.missed[0], d.missed[1]), max(4, busy))
}

// peak is how many were under way at once of late.
func (d *demand) peak() int64 { return max(d.highest[0], d.highest[1]) }

func (d *demand) isRecent(now clock.Instant) bool { return now.Sub(d.called) < rests }
