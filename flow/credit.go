package flow

import "math"

// credit makes a fractional ceiling hold on average. Whole tokens are allowed in
// every window; the fraction adds up, window by window, until it is one more
// token, which does not count against the whole ones. A ceiling of 2.5 thus
// allows 2 and now and then 3, and 0.5 one token in two windows. A ceiling below 1
// begins with that token: its first call passes.
type credit struct {
	saved float64 // fractions of tokens that were not used yet
	spent int64   // the bucket that last used a saved token
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

// earn saves up what a fraction per window is worth after some buckets of a
// window that has span of them. A token that went unused for a window is kept,
// and nothing beyond it.
func (c *credit) earn(fraction float64, buckets int64, span int) {
	c.saved += fraction / float64(span) * float64(buckets)
	if c.saved > 1+fraction {
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

// spend uses the saved token in a bucket.
func (c *credit) spend(bucket int64) {
	c.saved = max(0, c.saved-1)
	c.spent = bucket
}

// held returns how many saved tokens, 0 or 1, are in the window that has the
// given bucket as its last, under a ceiling that has a fraction.
func (c *credit) held(fraction float64, bucket int64, span int) int64 {
	if fraction > roundingError && bucket-c.spent < int64(span) {
		return 1
	}
	return 0
}

// refund saves the token again if it would not have been needed without what is
// given back of a bucket: if both were in one window.
func (c *credit) refund(bucket int64, span int) {
	if c.spent-int64(span) < bucket && bucket <= c.spent {
		c.saved++
		c.spent = never
	}
}

// renumber goes over to buckets of another length.
func (c *credit) renumber(number func(bucket int64) int64) {
	if c.spent != never {
		c.spent = number(c.spent)
	}
}

// earnedIn returns after how many buckets from the open one there will be a
// token to spend, if the one that is there now is spent.
func (c *credit) earnedIn(fraction float64, open int64, span int) int64 {
	missing, left := 1-c.saved, c.spent+int64(span)-open
	if c.held(fraction, open, span) == 0 && c.extra(fraction) == 1 {
		missing, left = missing+1, int64(span)
	}
	buckets := math.Ceil(missing*float64(span)/fraction - roundingError)
	return max(left, int64(min(buckets, math.MaxInt64/2)))
}
