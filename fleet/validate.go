package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/places"
)

// maxBuckets is the greatest number of buckets that a window of a [Store] may have.
const maxBuckets = 1000

// MaxTokens is the greatest number of tokens that a [Store] counts.
const MaxTokens = 1 << 40

// Validate returns all that is wrong with a request, or nil. A [Store] answers a request
// that is not valid with this error, and does not make it.
func (r *Request) Validate() error {
	var all []error
	add := func(format string, args ...any) {
		all = append(all, fmt.Errorf("fleet: limit %q: "+format, append([]any{r.Terms.Key}, args...)...))
	}
	if r.Operation == ClaimPlaces || r.Operation == ClaimValuePlaces {
		if r.Terms.Key == "" {
			add("the key is missing")
		}
		if err := r.validateClaim(); err != nil {
			add("%w", err)
		}
		return errors.Join(all...)
	}
	lease := r.Operation == LeaseBucket || r.Operation == LeaseWindow
	if r.Terms.Key == "" {
		add("the key is missing")
	}
	if r.Operation > AskBalance {
		add("there is no operation %d", r.Operation)
	}
	if !isCount(r.Terms.Limit) {
		add("limit is %v, it must be from 0 to 2⁴⁰", r.Terms.Limit)
	}
	if !isCount(r.Terms.Burst) {
		add("burst is %v, it must be from 0 to 2⁴⁰", r.Terms.Burst)
	}
	if r.Terms.Window < time.Millisecond {
		add("window is %v, it must be at least 1ms", r.Terms.Window)
	}
	if n := r.Terms.Buckets; r.Operation == LeaseWindow && (n < 1 || n > maxBuckets) {
		add("buckets is %d, it must be from 1 to %d", n, maxBuckets)
	}
	if n := r.Want; n > MaxTokens || n < -MaxTokens || lease && n < 0 {
		add("want is %d, it must be from 0 to 2⁴⁰, or to -2⁴⁰ for what is asked", n)
	}
	if !isCount(float64(r.Back)) {
		add("back is %d, it must be from 0 to 2⁴⁰", r.Back)
	}
	if !isCount(float64(r.Owed)) {
		add("owed is %d, it must be from 0 to 2⁴⁰", r.Owed)
	}
	if len(r.OwedBefore) > maxBuckets {
		add("owedBefore has %d buckets, it must have at most %d", len(r.OwedBefore), maxBuckets)
	}
	for _, n := range r.OwedBefore {
		if !isCount(float64(n)) {
			add("owedBefore has %d, it must be from 0 to 2⁴⁰", n)
		}
	}
	if r.Age < 0 {
		add("age is %v, it must not be negative", r.Age)
	}
	if r.Queue < 0 || r.Ahead < 0 || r.Keep < 0 || r.Terms.MaxWait < 0 {
		add("queue (%v), ahead (%v), keep (%v) and maxWait (%v) must not be negative",
			r.Queue, r.Ahead, r.Keep, r.Terms.MaxWait)
	}
	return errors.Join(all...)
}

// validateClaim returns what is wrong with what an instance claims.
func (r *Request) validateClaim() error {
	switch {
	case r.Operation == ClaimPlaces && r.Places != nil:
		return places.Check(r.Places)
	case r.Operation == ClaimValuePlaces && r.Value != nil:
		return places.CheckValue(r.Value)
	}
	return errors.New("the claim is missing")
}

func isCount(n float64) bool { return n >= 0 && n <= MaxTokens }
