package flow

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/warmup"
)

// cold is how cold a limiter's resource is, for terms that warm up or not.
type cold struct{ bucket warmup.Bucket }

// newCold returns the state of a stone-cold resource.
func newCold(t *Terms, now clock.Instant) cold {
	if !t.warmsUp() {
		return cold{}
	}
	return cold{warmup.NewBucket(t.curve, t.curve.Step(now))}
}

// ceilingOfTurn returns the ceiling, in tokens per window, of the step that now
// is in, for a rule with a queue.
func (c *cold) ceilingOfTurn(t *Terms, now clock.Instant) float64 {
	if !t.warmsUp() {
		return t.rule.Limit
	}
	c.bucket.Sync(t.curve, t.curve.Step(now))
	return c.bucket.Ceiling(t.curve) * t.seconds
}

// ceilingOfWindow is the same for a rule with a window.
func (c *cold) ceilingOfWindow(t *Terms, now clock.Instant) float64 {
	if !t.warmsUp() {
		return t.rule.Limit
	}
	c.bucket.Sync(t.curve, t.curve.Step(now))
	return c.bucket.Ceiling(t.curve) * t.spanLength().Seconds()
}

// isStoneCold says whether it could not be colder in the step of the last
// ceiling.
func (c *cold) isStoneCold(t *Terms) bool { return !t.warmsUp() || c.bucket.IsFull(t.curve) }

// holdBack tells that a window refused a call of n tokens for lack of room, in the
// step of the last ceiling.
func (c *cold) holdBack(t *Terms, n int64) {
	if n > 0 && t.warmsUp() {
		c.bucket.HoldBack(t.curve, n)
	}
}

// delay tells that a call of n tokens that came at now has its turn later: it waits for
// that, or is refused if the rule does not let it wait so long.
func (c *cold) delay(t *Terms, n int64, now, turn clock.Instant) {
	switch {
	case !t.warmsUp() || turn <= now:
	case turn.Sub(now) > t.rule.MaxWait:
		c.bucket.Refuse(n)
	default:
		c.bucket.Await(t.curve.Step(turn))
	}
}

// pass counts n tokens that passed at an instant.
func (c *cold) pass(t *Terms, n int64, at clock.Instant) {
	if t.warmsUp() {
		c.bucket.Pass(t.curve.Step(at), n)
	}
}

// adopt goes over to changed terms: warm stays warm.
func (c *cold) adopt(from, to *Terms, now clock.Instant) {
	switch {
	case !to.warmsUp():
	case from.warmsUp():
		c.bucket.Rescale(from.curve, to.curve)
	default:
		*c = newCold(to, now)
	}
}
