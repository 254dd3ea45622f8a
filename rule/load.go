package rule

// LoadLevel says how loaded a service is, in words that a handler can act by: the more loaded, the
// more it leaves out of what it could do without.
type LoadLevel uint8

// The levels, in ascending order.
const (
	// LoadNone: there is room.
	LoadNone LoadLevel = iota
	// LoadLight: most places are taken.
	LoadLight
	// LoadModerate: nearly all places are taken.
	LoadModerate
	// LoadSevere: calls wait for places.
	LoadSevere
	// LoadShedding: calls are refused because there are no places.
	LoadShedding
)

// String returns "none", "light", "moderate", "severe" or "shedding".
func (l LoadLevel) String() string {
	switch l {
	case LoadNone:
		return "none"
	case LoadLight:
		return "light"
	case LoadModerate:
		return "moderate"
	case LoadSevere:
		return "severe"
	}
	return "shedding"
}

// Begins says whether work of a priority should be begun at the level: sheddable work below
// [LoadModerate], that of a low priority below [LoadSevere], and other work always, for the rules
// decide on that.
func (l LoadLevel) Begins(p Priority) bool {
	switch {
	case p <= PrioritySheddable:
		return l < LoadModerate
	case p <= PriorityLow:
		return l < LoadSevere
	}
	return true
}

// Load is how much a limiter has to do at an instant.
type Load struct {
	// Utilization is the calls under way as a share of the limit, at most 1; of a queue of which
	// calls leave at a rate, how much of the longest wait is taken.
	Utilization float64

	// Waiting says that calls wait for places.
	Waiting bool
}
