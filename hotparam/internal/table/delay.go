package table

import (
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Delay returns how long it takes until a call passes without waiting if nobody else comes.
func (b *Buckets) Delay(hash uint64, rate *Rate, now clock.Instant, tokens int32) time.Duration {
	return b.RetryAfter(hash, rate, now, tokens)
}
