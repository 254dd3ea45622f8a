package fleet

import (
	"errors"
	"fmt"
	"time"
)

// MaxBuckets is the greatest number of buckets that a window of a [Store] may have.
const MaxBuckets = 1000

// MaxTokens is the greatest number of tokens that a [Store] counts.
const MaxTokens = 1 << 53

// Validate returns all that is wrong with a request, or nil. A [Store] answers a request
// that is not valid with this error, and does not make it.
func (r *Request) Validate() error {
	var all []error
	add := func(format string, args ...any) {
		all = append(all, fmt.Errorf("fleet: limit %q: "+format, append([]any{r.Terms.Key}, args...)...))
	}
	lease := r.Operation == LeaseBucket || r.Operation == LeaseWindow
	if r.Terms.Key == "" {
		add("the key is missing")
	}
	if r.Operation > AskThrottle {
		add("there is no operation %d", r.Operation)
	}
	if !isCount(r.Terms.Limit) {
		add("limit is %v, it must be from 0 to 2⁵³", r.Terms.Limit)
	}
	if !isCount(r.Terms.Burst) {
		add("burst is %v, it must be from 0 to 2⁵³", r.Terms.Burst)
	}
	if r.Terms.Window < time.Millisecond {
		add("window is %v, it must be at least 1ms", r.Terms.Window)
	}
	if n := r.Terms.Buckets; r.Operation == LeaseWindow && (n < 1 || n > MaxBuckets) {
		add("buckets is %d, it must be from 1 to %d", n, MaxBuckets)
	}
	if n := r.Want; n > MaxTokens || n < -MaxTokens || lease && n < 0 {
		add("want is %d, it must be from 0 to 2⁵³, or to -2⁵³ for what is asked", n)
	}
	if !isCount(float64(r.Back)) {
		add("back is %d, it must be from 0 to 2⁵³", r.Back)
	}
	if !isCount(float64(r.Owed)) {
		add("owed is %d, it must be from 0 to 2⁵³", r.Owed)
	}
	if r.Queue < 0 || r.Ahead < 0 || r.Keep < 0 || r.Terms.MaxWait < 0 {
		add("queue (%v), ahead (%v), keep (%v) and maxWait (%v) must not be negative",
			r.Queue, r.Ahead, r.Keep, r.Terms.MaxWait)
	}
	return errors.Join(all...)
}

func isCount(n float64) bool { return n >= 0 && n <= MaxTokens }
