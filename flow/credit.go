package flow

import "math"

// credit makes a fractional ceiling hold on average. Whole tokens are allowed in
// every window; the fraction adds up, window by window, until it is one more
// token. A ceiling of 2.5 thus allows 2 and now and then 3, and 0.5 one token
// in two windows. A limit below 1 begins with that token: its first call
// passes.
type credit struct {
	saved float64 // fractions of tokens that were not used yet
	spent int64   // the bucket that last used a saved token, see refund
}

// roundingError is how far a sum of fractions may fall short of a whole token.
const roundingError = 1e-9

func newCredit(ceiling float64) credit {
	if ceiling < 1-roundingError {
		return credit{saved: 1}
	}
	return credit{}
}

// split parts a ceiling into whole tokens and the fraction of one.
func split(ceiling float64) (whole int64, fraction float64) {
	floor := math.Floor(ceiling + roundingError)
	return int64(floor), max(0, ceiling-floor)
}

// earn saves up what a fraction per window is worth after some buckets of a
// window that has span of them. An unused token is kept, a second one is not.
func (c *credit) earn(fraction float64, buckets int64, span int) {
	perBucket := fraction / float64(span)
	c.saved = max(c.saved, min(c.saved+perBucket*float64(buckets), 1+perBucket))
}

// extra returns the token, 0 or 1, that may be taken beyond the whole ones.
func (c *credit) extra(fraction float64) int64 {
	if fraction > roundingError && c.saved >= 1-roundingError {
		return 1
	}
	return 0
}

// spend uses the saved token in a bucket.
func (c *credit) spend(bucket int64) {
	c.saved = max(0, c.saved-1)
	c.spent = bucket
}

// refund saves the token again if it was the given bucket that used it.
func (c *credit) refund(bucket int64) {
	if c.spent == bucket {
		c.saved++
		c.spent = math.MinInt64
	}
}

// earnedIn returns after how many buckets there will be a token to spend, if
// the one that is there now is spent.
func (c *credit) earnedIn(fraction float64, span int) int64 {
	missing := 1 - c.saved
	if c.extra(fraction) == 1 {
		missing++
	}
	return int64(math.Ceil(missing*float64(span)/fraction - roundingError))
}
