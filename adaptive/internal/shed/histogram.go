package shed

// histogram is what has arrived, by level and by the bucket of the caller.
type histogram struct {
	buckets [Levels][positions]float64 // calls whose callers were looked at
	sorted  [Levels]float64            // the sum of these
	total   [Levels]float64            // with the others
	all     float64
}

// rankOf returns the rank at or above which a share of the arrivals is; 0 if that is all
// of them.
func (h *histogram) rankOf(share float64, rotation uint32) uint32 {
	if share >= 1 {
		return 0
	}
	wanted := share * h.all
	for level := Levels - 1; level >= 0; level-- {
		if wanted < h.total[level] {
			return uint32(level)<<levelShift + h.rankWithin(level, wanted, rotation)
		}
		wanted -= h.total[level]
	}
	return 0
}

// rankWithin returns the rank within a level at or above which so many of its calls are.
// Calls whose callers were not looked at are taken to be like the others.
func (h *histogram) rankWithin(level int, wanted float64, rotation uint32) uint32 {
	for position := positions - 1; position >= 0; position-- {
		here := h.total[level] / positions
		if h.sorted[level] > 0 {
			bucket := (uint32(position) - rotation) & positionMask
			here = h.buckets[level][bucket] * h.total[level] / h.sorted[level]
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
