package flow

import (
	"math"

	"github.com/penstock-go/penstock/clock"
)

// credit makes a fractional ceiling hold on average. Whole tokens are allowed in
// every window; the fraction adds up, window by window, until it is one more
// token, which does not count against the whole ones. A ceiling of 2.5 thus
// allows 2 and now and then 3, and 0.5 one token in two windows. A ceiling below 1
// begins with that token: its first call passes.
//
// While a resource is cold, calls may be larger than its ceiling though not than its
// limit. For those the unused whole tokens are saved up too, see [largeCalls].
type credit struct {
	saved float64 // fractions of tokens that were not used yet
	spent int64   // the bucket that last used saved tokens
	out   int64   // how many

	spentAt clock.Instant // when that bucket ended, or the rule changed its shape in it
	kept    float64       // what was saved when the rule last changed, less what was used since
	changed clock.Instant // when that was

	wanted   int64 // tokens of the largest call that is saved up for; 0 for none
	wantedIn int64 // the bucket in which such a call last came
}

// roundingError is how far a sum of fractions may fall short of a whole token.
const roundingError = 1e-9

// never is a bucket that no window holds.
const never = math.MinInt64 / 2

// newCredit returns what a limiter with that ceiling starts with: a token where none
// would pass for more than a window, cold or not. A limiter is idle no sooner than that
// token is there again, see [Window.Idle]; so a resource that is forgotten between
// calls that are far apart passes neither more nor fewer than one that is not.
func newCredit(ceiling float64) credit {
	if whole, _ := split(ceiling); whole > 0 {
		return credit{spent: never}
	}
	return credit{saved: 1, spent: never}
}

// split parts a ceiling into whole tokens and the fraction of one.
func split(ceiling float64) (whole int64, fraction float64) {
	floor := math.Floor(ceiling + roundingError)
	return int64(floor), max(0, ceiling-floor)
}

// earn saves up what went unused of a ceiling: its fraction, and whole tokens if they
// are wanted. A token that went unused for a window is kept, and nothing beyond it but
// what is wanted and what comes in a window.
func (c *credit) earn(ceiling, unused float64) {
	whole, fraction := split(ceiling)
	c.saved += unused
	if most := float64(c.wanted-whole) + ceiling; c.wanted > 0 && most > 1 {
		c.saved = min(c.saved, most)
	} else if c.saved > 1+fraction {
		c.saved = 1
	}
}

// extra returns the token, 0 or 1, that may be taken beyond the whole ones.
func (c *credit) extra(fraction float64) int64 {
	if fraction > roundingError && c.saved >= 1-roundingError {
		return 1
	}
	return 0
}

// isNew says whether as much is saved as a new limiter of that ceiling starts with.
// What one has saved beyond whole tokens per window is not missed: it lets one token
// more pass in one window, if ever.
func (c *credit) isNew(ceiling float64) bool {
	whole, fraction := split(ceiling)
	return whole > 0 || fraction <= roundingError || math.Abs(c.saved-1) <= roundingError
}

// spend uses saved tokens in a bucket, which ends at an instant.
func (c *credit) spend(bucket int64, end clock.Instant, tokens int64) {
	c.saved, c.kept = max(0, c.saved-float64(tokens)), max(0, c.kept-float64(tokens))
	c.spent, c.spentAt, c.out = bucket, end, tokens
}

// held returns how many saved tokens are in the window that has the given bucket as
// its last, beyond the whole ones of its ceiling: 0 if that has no fraction, unless
// they were saved for a large call, and never so many that the limit is exceeded.
func (c *credit) held(whole int64, fraction float64, t *Terms, bucket int64) int64 {
	if fraction <= roundingError && c.out <= 1 || bucket-c.spent >= int64(t.span) {
		return 0
	}
	return max(0, min(c.out, t.most-whole))
}

// refund saves tokens again that would not have been needed without those that are
// given back of a bucket: if both were in one window.
func (c *credit) refund(bucket int64, span int, tokens int64) {
	if c.spent-int64(span) < bucket && bucket <= c.spent {
		c.unspend(tokens)
	}
}

// unspend saves again as many of the tokens that were spent last.
func (c *credit) unspend(tokens int64) {
	tokens = min(tokens, c.out)
	c.saved, c.kept, c.out = c.saved+float64(tokens), c.kept+float64(tokens), c.out-tokens
	if c.out == 0 {
		c.spent = never
	}
}

// adopt goes over to changed terms at the start of the present bucket. What is
// saved is no more than the new terms would have saved since the last change: one
// that is taken back leaves nothing behind.
func (c *credit) adopt(from, to *Terms, now clock.Instant) {
	c.adoptWanted(from, to)
	_, most := split(to.rule.Limit)
	switch {
	case c.wanted > 0:
		most = to.rule.Limit
	case to.warmsUp():
		most = 1 // or less, as the ceiling rises
	}
	c.saved = min(c.saved, c.kept+most*float64(max(0, now.Sub(c.changed)))/float64(to.spanLength()))
	c.kept, c.changed = c.saved, now
}

// reshape goes over to buckets of another length at now. What passed before an instant
// is not known: saved tokens that were used before are in no window any more.
func (c *credit) reshape(from, to *Terms, known, now clock.Instant) {
	switch {
	case c.spent != never && c.spentAt < known:
		c.spent, c.out = never, 0
	case c.spent != never:
		c.spentAt = min(c.spentAt, now)
		c.spent = to.bucketOf(c.spentAt)
	}
	c.wantedIn = to.bucketOf(min(now, from.bucketEnd(c.wantedIn)))
}

// inherit takes no more along from another limiter than so much of a token.
func (c *credit) inherit(token float64) {
	c.saved = min(c.saved, token)
	c.kept = c.saved
}

// earnedIn returns after how many buckets from the open one there will be a
// token to spend, if the one that is there now is spent.
func (c *credit) earnedIn(fraction float64, open int64, span int) int64 {
	missing, left := 1-c.saved, c.spent+int64(span)-open
	if left <= 0 && c.extra(fraction) == 1 {
		missing, left = missing+1, int64(span)
	}
	buckets := math.Ceil(missing*float64(span)/fraction - roundingError)
	return max(left, int64(min(buckets, math.MaxInt64/2)))
}
