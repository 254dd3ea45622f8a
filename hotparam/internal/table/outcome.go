package table

// Outcome is what became of an attempt to take from a table.
type Outcome uint8

const (
	// Taken tells that the call passes and is counted.
	Taken Outcome = iota

	// Refused tells that the value has used up its limit, or, if the place
	// [Place.IsShared], that those may have who share its counters. Nothing is counted.
	Refused

	// Stale tells that the table has gone over to a newer version of the rule. Nothing
	// is counted; the caller has to ask the limiter of the newer version.
	Stale

	// NoSlot tells that the value finds no slot, or one of the last only, and that the table
	// has to know where the call comes from to decide. Nothing is counted. It is the answer to a call from an
	// [UnknownSource] only.
	NoSlot
)

// Place says where a call was counted, so that it can be given back, settled or released.
// The zero value is nowhere: there is nothing to give back. Places take at most 25 bits in
// tables of up to 1,048,575 slots ([Stats.Capacity]), else at most 48; so do those of calls under
// way whose value has no slot, or that have an age.
type Place uint64

// Stats are counts of a table.
type Stats struct {
	// Capacity is the number of slots.
	Capacity int

	// Bytes is the memory that the table takes.
	Bytes int

	// Occupied is the number of slots with a value whose state is not as new.
	Occupied int

	// Forgotten is how often a slot was given to another value since the table was
	// made. Only values whose state was as new are forgotten.
	Forgotten uint64

	// WithoutSlot is how many decisions were made by the sketch since the table was
	// made, because a value found no slot.
	WithoutSlot uint64
}
