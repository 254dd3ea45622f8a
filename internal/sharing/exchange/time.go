package exchange

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	// Tick is how often limits with demand are looked at, at most. What is due within one
	// goes in one batch.
	Tick = 10 * time.Millisecond

	// MaxLife is how long leased tokens may be used at most.
	MaxLife = time.Second
)

// NextTick returns the first tick that is not before an instant.
func NextTick(at clock.Instant) clock.Instant {
	return (at + clock.Instant(Tick) - 1) / clock.Instant(Tick) * clock.Instant(Tick)
}

// AnnounceInterval is how often an instance announces itself.
const AnnounceInterval = time.Second

// DefaultTimeout is the default of [fleet.Config.Timeout].
const DefaultTimeout = 100 * time.Millisecond

// Never is the last instant there is.
const Never = clock.Instant(math.MaxInt64)
