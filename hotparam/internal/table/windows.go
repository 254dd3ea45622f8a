package table

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// WindowTerms are what all values of a table of [Windows] have in common, of one version
// of a rule. They never change.
type WindowTerms struct {
	version uint64
	bucket  int64 // nanoseconds
}

// CompileWindow compiles a window of at least 10 ns. The version is higher than that of
// all earlier ones of the same table.
func CompileWindow(version uint64, window time.Duration) *WindowTerms {
	return &WindowTerms{version: version, bucket: int64(window / 10)}
}

// Windows is a table of sliding windows: ten buckets per value, each a tenth of the window
// long and aligned to instant 0. A call passes if the present bucket and the nine before
// it count no more than the limit with it.
type Windows struct{}

// NewWindows makes a table that holds at least maxValues values at a time. It takes about
// 60 bytes a value.
func NewWindows(maxValues int, terms *WindowTerms) *Windows { return &Windows{} }

// Adopt returns the table for another version of the rule, as [Buckets.Adopt] does. What
// a value has used stays used. When the window changes, what was counted in a bucket
// stays at the instant at which that bucket ended.
func (w *Windows) Adopt(maxValues int, terms *WindowTerms) *Windows { return w }

// Activate goes over to newer terms, as [Buckets.Activate] does.
func (w *Windows) Activate(terms *WindowTerms, now clock.Instant) {}

// Take counts tokens for a value if they and those in its window are no more than the
// limit, at most 2³²−1.
func (w *Windows) Take(hash uint64, terms *WindowTerms, limit int64, now clock.Instant, tokens int32) (Place, Outcome) {
	return 0, Refused
}

// GiveBack undoes a Take of so many tokens, if the value still has its slot and the bucket
// in which they count is still in the window.
func (w *Windows) GiveBack(p Place, now clock.Instant, tokens int32) {}

// Settle adds tokens to the bucket in which the call counts, even over the limit, or takes
// some off if the number is negative, if that bucket is still in the window.
func (w *Windows) Settle(p Place, now clock.Instant, tokens int32) {}

// RetryAfter is [Buckets.RetryAfter].
func (w *Windows) RetryAfter(hash uint64, terms *WindowTerms, limit int64, now clock.Instant, tokens int32) time.Duration {
	return 0
}

// Used returns how many tokens the window of a value counts.
func (w *Windows) Used(hash uint64, terms *WindowTerms, now clock.Instant) int64 { return 0 }

// Stats returns the counts of the table. It reads all of it.
func (w *Windows) Stats(now clock.Instant) Stats { return Stats{} }
