package hotparam

import (
	"hash/maphash"

	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/rule"
)

// plainLimiter is the limiter of most rules: those that isPlain. It decides on values that are
// texts in a way that is 7 ns shorter.
type plainLimiter struct{ limiter }

// isPlain says whether all values have the same token bucket, and no penalties.
func (c *compiled) isPlain() bool {
	return c.rule.Algorithm == TokenBucket && c.rule.Penalty == (Penalty{}) && len(c.exact)+len(c.patterns) == 0
}

// Acquire decides on a call as limiter does.
func (l *plainLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	text, isText := c.Attribute.Text()
	t := l.main.Load()
	if t == nil || !isText || l.hasher.fixed != 0 {
		return l.limiter.Acquire(c)
	}
	s := subject{key: (maphash.String(l.hasher.texts, text) ^ l.state.salt) & keyMask}
	place, wait, outcome := t.buckets.TakeOrWait(s.key, l.now[0], c.Now, c.Tokens)
	switch outcome {
	case table.Taken:
		return l.pass(t, place, s, c.Now, c.Attribute), rule.Pass
	case table.Stale:
		return 0, rule.Stale
	}
	return l.refuse(s, c, wait, place.IsShared())
}
