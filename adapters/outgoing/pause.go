package outgoing

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// pause is a time during which a target wants no calls, and a spread after it during which
// more and more of them pass: the end in milliseconds, and the milliseconds of the spread in
// the low bits. A pause that ends later is greater. 0 is none.
type pause uint64

const (
	spreadBits = 20
	spreadPart = 5                // of a pause is its spread: a fifth …
	maxSpread  = 10 * time.Second // … but not more than this
)

func newPause(now clock.Instant, length time.Duration) pause {
	const ms = int64(time.Millisecond)
	end := (int64(now) + int64(length) + ms - 1) / ms
	spread := min(length/spreadPart, maxSpread)
	return pause(end)<<spreadBits | pause((int64(spread)+ms-1)/ms)
}

func (p pause) end() clock.Instant {
	return clock.Instant(int64(p>>spreadBits) * int64(time.Millisecond))
}

func (p pause) spread() time.Duration {
	return time.Duration(p&(1<<spreadBits-1)) * time.Millisecond
}

// left returns how long it takes until all calls pass.
func (p pause) left(now clock.Instant) time.Duration {
	if p == 0 {
		return 0
	}
	return max(p.end().Sub(now)+p.spread(), 0)
}

// refusal returns the share of calls that are to be refused: 1 until the end, and less and
// less during the spread.
func (p pause) refusal(now clock.Instant) float64 {
	if now < p.end() {
		return 1
	}
	return float64(p.left(now)) / float64(p.spread()+1)
}
