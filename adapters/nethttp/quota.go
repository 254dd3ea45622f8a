package nethttp

import (
	"math"
	"time"
)

const (
	// maxInteger is the greatest Integer of structured fields (RFC 9651, 3.3.1).
	maxInteger = 999_999_999_999_999

	// quotaPrecision is the share by which an announced rate may differ from
	// that of the rule and still count as the same.
	quotaPrecision = 1e-5

	// quotaWindows is how many windows are tried for a whole quota.
	quotaWindows = 100

	// longestQuotaWindow is the longest window, in seconds, that is announced for
	// a quota of one call: 30 years. A lower rate announces 0.
	longestQuotaWindow = 1e9
)

// wholeQuota converts the rate of a rule to whole numbers, as RateLimit-Policy needs
// them: a quota in a window of so many seconds. The window is the shortest one, not
// shorter than the rule's, for which that is exact (see quotaPrecision): 0.5 in 1 s
// becomes 1 in 2 s; 100 in 100 ms becomes 1000 in 1 s. If none of a hundred windows
// is exact, it takes the closest one and rounds the quota down, so that it never
// announces more than the rule allows.
func wholeQuota(limit float64, window time.Duration) (quota, seconds int64) {
	first := wholeSeconds(window)
	rate := limit / window.Seconds()
	if rate*longestQuotaWindow < 1 {
		return 0, first
	}
	first = max(first, int64(math.Ceil(1/rate*(1-quotaPrecision))))
	missing := math.Inf(1)
	for w := first; w < first+quotaWindows && missing > quotaPrecision; w++ {
		exact := rate * float64(w)
		whole := math.Floor(exact)
		if near := math.Round(exact); near <= exact*(1+quotaPrecision) {
			whole = near
		}
		if short := 1 - whole/exact; short < missing {
			quota, seconds, missing = int64(whole), w, short
		}
	}
	return quota, seconds
}

// wholeSeconds rounds up to whole seconds.
func wholeSeconds(d time.Duration) int64 {
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	return seconds
}
