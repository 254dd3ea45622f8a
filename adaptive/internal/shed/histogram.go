package shed

// histogram is what has arrived, by level and by the bucket of the caller.
type histogram struct {
	buckets [Levels][buckets]float64 // calls whose callers were looked at
	sorted  [Levels]float64          // the sum of these
	total   [Levels]float64          // with the others
	all     float64
}

// divisible is the least share of the calls of a level that are from known callers, where it
// is divided by callers.
const divisible = 0.1

// rankOf returns the rank at or above which a share of the arrivals is; 0 if that is all
// of them. If no calls may be divided at random, it is the highest rank that divides none and
// has at least that share.
func (h *histogram) rankOf(share float64, rotation uint32, atRandom bool) uint32 {
	level, wanted, ok := h.levelOf(share)
	if !ok {
		return 0
	}
	first := uint32(level) << levelShift
	switch {
	case atRandom:
		return first + h.rankWithin(level, wanted, rotation)
	case h.known(level) < divisible:
		return first
	}
	return first + h.rankWithin(level, wanted, rotation)&^randomMask
}

// levelOf returns the level that passes in part if a share of the arrivals is to pass, and how
// many of its calls are to. It returns false if all arrivals are.
func (h *histogram) levelOf(share float64) (level int, wanted float64, ok bool) {
	if share >= 1 {
		return 0, 0, false
	}
	wanted = share * h.all
	for level := Levels - 1; level >= 0; level-- {
		if wanted < h.total[level] {
			return level, wanted, true
		}
		wanted -= h.total[level]
	}
	return 0, 0, false
}

// known returns the share of the calls of a level whose callers are known.
func (h *histogram) known(level int) float64 {
	if h.sorted[level] == 0 {
		return 0
	}
	return 1 - h.buckets[level][unknownCallers]/h.sorted[level]
}

// rankWithin returns the rank within a level at or above which so many of its calls are.
// Calls whose callers were not looked at are taken to be like the others; those whose callers
// are not known have a random position.
func (h *histogram) rankWithin(level int, wanted float64, rotation uint32) uint32 {
	for position := positions - 1; position >= 0; position-- {
		here := h.total[level] / positions
		if h.sorted[level] > 0 {
			bucket := (uint32(position) - rotation) & positionMask
			at := h.buckets[level][bucket] + h.buckets[level][unknownCallers]/positions
			here = at * h.total[level] / h.sorted[level]
		}
		if wanted < here {
			random := uint32((1 - wanted/here) * (randomMask + 1))
			return uint32(position)<<randomBits + random // at most the first rank of the next position
		}
		wanted -= here
	}
	return 0
}

// lowest returns the lowest level that calls came from.
func (h *histogram) lowest() int {
	for level := range Levels {
		if h.total[level] > 0 {
			return level
		}
	}
	return 0
}
