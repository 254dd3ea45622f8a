package flow

import (
	"math"

	"github.com/penstock-go/penstock/clock"
)

// fractionCarry makes a fractional limit hold on average. The whole tokens of the limit
// are allowed in every window. The fraction is carried over from window to window until
// it is a token, which is then allowed beside the whole ones. A limit of 2.5 thus allows
// 2 tokens in one window and 3 in another, and 0.5 allows one token in two windows. A
// limit below 1 starts with that token, so that its first call passes.
//
// While a resource is cold, calls may take more than the effective limit, but not more
// than the limit of the rule. Unused whole tokens are carried over for them, see
// [largeCalls].
type fractionCarry struct {
	saved   float64 // tokens carried over that were not used yet
	spentIn int64   // the bucket in which tokens carried over were last used
	spent   int64   // how many

	spentAt       clock.Instant // when that bucket ended, or when the rule changed its shape in it
	savedAtChange float64       // what was saved when the rule last changed, less what was used since
	changedAt     clock.Instant // when that was

	wanted      int64 // tokens of the largest call to save for; 0 for none
	wantedIn    int64 // the bucket in which such a call last came
	wantedAbove int64 // the whole tokens of the limit in it
}

// never is a bucket that no window holds.
const never = math.MinInt64 / 2

// newFractionCarry returns what a window of that limit starts with: a token if the limit
// is below 1. A window is not idle before that token is there again, see window.Idle.
// So a resource that is evicted between rare calls passes neither more nor fewer of
// them than one that is kept.
func newFractionCarry(limit float64) fractionCarry {
	if whole, _ := split(limit); whole > 0 {
		return fractionCarry{spentIn: never}
	}
	return fractionCarry{saved: 1, spentIn: never}
}

// save carries over what was not used of a limit: its fraction, and whole tokens if
// they are wanted. At most one token is carried over for longer than a window, and
// what is wanted.
func (c *fractionCarry) save(limit, unused float64) {
	whole, fraction := split(limit)
	c.saved += unused
	if most := float64(c.wanted-whole) + limit; c.wanted > 0 && most > 1 {
		c.saved = min(c.saved, most)
	} else if c.saved > 1+fraction {
		c.saved = 1
	}
}

// available returns how many tokens, 0 or 1, may be taken beside the whole ones.
func (c *fractionCarry) available(fraction float64) int64 {
	if fraction > 0 && c.saved >= 1-roundingError {
		return 1
	}
	return 0
}

// isInitial says whether as much is saved as a new window of that limit starts with.
// What is saved beside whole tokens does not count: it lets one token more pass in one
// window at most.
func (c *fractionCarry) isInitial(limit float64) bool {
	whole, fraction := split(limit)
	return whole > 0 || fraction == 0 || math.Abs(c.saved-1) <= roundingError
}

// spend uses saved tokens in a bucket, which ends at an instant.
func (c *fractionCarry) spend(bucket int64, end clock.Instant, tokens int64) {
	c.saved, c.savedAtChange = max(0, c.saved-float64(tokens)), max(0, c.savedAtChange-float64(tokens))
	c.spentIn, c.spentAt, c.spent = bucket, end, tokens
}

// inWindow returns how many of the spent tokens are in the window that ends with a
// bucket. They do not count against the whole tokens of its limit. It is 0 if the limit
// has no fraction, unless they were saved for a large call, and never so much that the
// limit of the rule would be exceeded.
func (c *fractionCarry) inWindow(whole int64, fraction float64, r *compiledRule, bucket int64) int64 {
	if fraction == 0 && c.spent <= 1 || bucket-c.spentIn >= int64(r.span) {
		return 0
	}
	return max(0, min(c.spent, r.most-whole))
}

// refund saves tokens again that were spent, when others are given back that passed in
// a bucket: if both were in one window, the spent ones would not have been needed.
func (c *fractionCarry) refund(bucket int64, span int32, tokens int64) {
	if c.spentIn-int64(span) < bucket && bucket <= c.spentIn {
		c.unspend(tokens)
	}
}

// unspend saves again up to so many of the tokens that were spent last.
func (c *fractionCarry) unspend(tokens int64) {
	tokens = min(tokens, c.spent)
	c.saved, c.savedAtChange, c.spent = c.saved+float64(tokens), c.savedAtChange+float64(tokens), c.spent-tokens
	if c.spent == 0 {
		c.spentIn = never
	}
}

// adopt goes over to a changed rule at the start of the present bucket. What is saved is
// limited to what the new rule would have saved since the last change, so that a change
// that is taken back yields nothing.
func (c *fractionCarry) adopt(from, to *compiledRule, now clock.Instant) {
	c.adoptWanted(from, to)
	_, most := split(to.rule.Limit)
	switch {
	case c.wanted > 0:
		most = to.rule.Limit
	case to.warmsUp():
		most = 1 // or less, as the limit rises
	}
	c.saved = min(c.saved, c.savedAtChange+most*float64(max(0, now.Sub(c.changedAt)))/float64(to.spanLength()))
	c.savedAtChange, c.changedAt = c.saved, now
}

// reshape goes over to buckets of another length at now. What passed before an instant
// is not known: tokens spent before it are in no window any more.
func (c *fractionCarry) reshape(from, to *compiledRule, known, now clock.Instant) {
	switch {
	case c.spentIn != never && c.spentAt < known:
		c.spentIn, c.spent = never, 0
	case c.spentIn != never:
		c.spentAt = min(c.spentAt, now)
		c.spentIn = to.bucketOf(c.spentAt)
	}
	c.wantedIn = to.bucketOf(min(now, from.bucketEnd(c.wantedIn)))
}

// limitTo limits what is saved to so many tokens.
func (c *fractionCarry) limitTo(tokens float64) {
	c.saved = min(c.saved, tokens)
	c.savedAtChange = c.saved
}

// nextIn returns after how many buckets from the open one a token can be spent, if one
// that is saved now is spent at once.
func (c *fractionCarry) nextIn(fraction float64, open int64, span int32) int64 {
	missing, left := 1-c.saved, c.spentIn+int64(span)-open
	if left <= 0 && c.available(fraction) == 1 {
		missing, left = missing+1, int64(span)
	}
	buckets := math.Ceil(missing*float64(span)/fraction - roundingError)
	return max(left, int64(min(buckets, math.MaxInt64/2)))
}

// adoptWanted goes over to a changed rule: what is saved for a large call is a share of
// the limit.
func (c *fractionCarry) adoptWanted(from, to *compiledRule) {
	if c.wanted == 0 {
		return
	}
	if !to.warmsUp() || to.most <= 1 {
		c.wanted = 0
		return
	}
	c.wanted = min(c.wanted, to.most)
	c.saved *= min(1, to.rule.Limit/from.rule.Limit)
}
