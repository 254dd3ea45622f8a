package table

// Concurrency is a table of the calls under way per value.
type Concurrency struct{}

// NewConcurrency makes a table that holds at least maxValues values at a time. It takes
// about 12 bytes a value.
func NewConcurrency(maxValues int, version uint64) *Concurrency { return &Concurrency{} }

// Adopt returns the table for another version of the rule: this one, or, for another
// maxValues, a new one that takes over from it, as [Buckets.Adopt] does. Calls that were
// acquired here are released here.
func (c *Concurrency) Adopt(maxValues int, version uint64) *Concurrency { return c }

// Activate makes calls with older versions stale.
func (c *Concurrency) Activate(version uint64) {}

// Acquire counts a call of a value if fewer than limit are under way. It is then to be
// released with the place, once, also if it is given back.
func (c *Concurrency) Acquire(hash uint64, version uint64, limit int64) (Place, Outcome) {
	return 0, Refused
}

// Release ends a call.
func (c *Concurrency) Release(p Place) {}

// InFlight returns how many calls of a value are under way.
func (c *Concurrency) InFlight(hash uint64) int64 { return 0 }

// Stats returns the counts of the table. It reads all of it.
func (c *Concurrency) Stats() Stats { return Stats{} }
