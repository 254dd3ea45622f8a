package lease

// MaxLooks is how many budgets are looked at in one step.
const MaxLooks = maxLooks

// IsAsleep says whether nothing happens to the budget until a call wakes it.
func (b *Budget) IsAsleep() bool { return b.isAsleep() }

// InOutage says whether the budget decides by itself.
func (b *Budget) InOutage() bool { return b.outage.Active }
