package tenants

import (
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/fairqueue"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// Acquaintances are the tenants of a queue that are known. Those whose calls pass while nobody waits
// become known: one in eight of these calls is looked at or, when the last ones were all of known
// tenants, one in 64, since it costs more to find out whose call it is than to let it pass. The zero
// value knows nobody. It is safe for concurrent use.
type Acquaintances struct {
	tenants fairqueue.Known
	inRow   atomic.Uint32 // calls of known tenants that were looked at one after the other
}

const (
	lookBits     = 3  // of a number that are 0 in the calls that are looked at
	lookBitsLess = 6  // when
	settledAfter = 64 // calls in a row were of known tenants
)

// LooksAt says whether to look whose call it is that passes at an instant.
func (a *Acquaintances) LooksAt(now clock.Instant) bool {
	const golden = 0x9E3779B97F4A7C15 // spreads regular instants evenly
	number := uint64(now) * golden
	return number>>(64-lookBits) == 0 && (number>>(64-lookBitsLess) == 0 || a.inRow.Load() < settledAfter)
}

// Meet makes the tenant of a call known that has passed.
func (a *Acquaintances) Meet(tenant uint64, now clock.Instant) {
	if a.tenants.Add(tenant, time.Duration(now)) {
		a.inRow.Store(0)
	} else if n := a.inRow.Load(); n < settledAfter {
		a.inRow.Store(n + 1)
	}
}

// IsKnown says whether a tenant is known, and notes that it was asked for.
func (a *Acquaintances) IsKnown(tenant uint64, now clock.Instant) bool {
	return a.tenants.Has(tenant, time.Duration(now))
}

// Knows says whether a call is one of a known tenant, and notes that it was asked for: whoever cannot be
// invented always is, which are those with a weight, and calls without the attribute.
func (a *Acquaintances) Knows(tenant uint64, value rule.Attribute, hasWeight bool, now clock.Instant) bool {
	return hasWeight || !value.IsSet() || a.IsKnown(tenant, now)
}

// Add makes the tenant known that was charged, if it was served while few unknown ones waited.
func (a *Acquaintances) Add(of waitqueue.Charge, now clock.Instant) {
	if tenant, ok := of.KnownTenant(); ok {
		a.tenants.Add(tenant, time.Duration(now))
	}
}
