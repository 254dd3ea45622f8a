package lease

import "github.com/penstock-go/penstock/internal/sharing/packed"

// MaxLooks is how many budgets are looked at in one step.
const MaxLooks = maxLooks

// IsAsleep says whether nothing happens to the budget until a call wakes it.
func (b *Budget) IsAsleep() bool { return b.isAsleep() }

// InOutage says whether the budget decides by itself.
func (b *Budget) InOutage() bool { return b.outage.Active }

// Leased returns the tokens that calls can take and that were leased: those on debt are not.
func (b *Budget) Leased() int64 {
	b.set.Mu.Lock()
	defer b.set.Mu.Unlock()
	return packed.Tokens(b.packed.Load()).Tokens() - b.debt
}
