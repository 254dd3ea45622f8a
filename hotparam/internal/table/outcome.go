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

// Source is where a call comes from, such as the network of its client, as a hash. From each
// source, [geometry.sourceShare] values may have one of the last slots: so who invents values, from
// a few networks, leaves slots to values from elsewhere. Those that find no slot may together pass
// as much as a part of so many values may: so he fills the sketch with little, too.
type Source uint64

const (
	// NoSource is that of calls of which it is not known, nor will be: only what their value
	// has used counts.
	NoSource Source = 0

	// UnknownSource is that of calls of which it can be found out.
	UnknownSource Source = 1
)

// lastSlots returns what the last slots are counted for that a source has, apart from what its values
// without a slot use.
func (s Source) lastSlots() Source {
	if s == NoSource {
		return s
	}
	return s ^ golden>>1
}

// SourceOf returns the source that has a hash.
func SourceOf(hash uint64) Source { return Source(hash | 1<<63) }

// Place says where a call was counted, so that it can be given back, settled or released.
// The zero value is nowhere: there is nothing to give back. Places take at most 25 bits in
// tables of up to 1,048,575 slots ([Stats.Capacity]), else at most 48.
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
