package share

import (
	"math"
	"slices"
)

// What [allocate] adds to the demand of an instance, so that it need not refuse calls because
// its demand varies: a twentieth, and half of what random calls vary by.
const headroom = 0.05

// quietPart is the least part of a limit, of an even one, that an instance has whatever its
// demand is.
const quietPart = 0.05

// allocation is a limit divided by demand, max-min fair: who demands less than an even part has that, with
// some headroom, and the others have the same part each of what is left.
type allocation struct {
	least   float64 // part of an instance without demand, unless there is a surplus
	most    float64 // part of those that demand more
	even    float64
	surplus float64 // what is left when all can have what they demand, for each unit of slack
}

// allocate divides a limit among instances, by what they demand. Both are in the same unit,
// such as tokens per window. All parts together are the limit.
func allocate(limit float64, demand []float64) allocation {
	n := float64(len(demand))
	a := allocation{most: math.Inf(1), even: limit / n, least: quietPart * limit / n}
	wanted := make([]float64, len(demand))
	slack := 0.0
	for i, demand := range demand {
		wanted[i] = a.wanted(demand)
		slack += a.slack(demand)
	}
	slices.Sort(wanted)
	for i, wanted := range wanted {
		even := limit / (n - float64(i))
		if wanted >= even {
			a.most = even
			return a
		}
		limit -= wanted
	}
	a.surplus = limit / slack
	return a
}

// wanted returns what an instance should have if there is enough.
func (a *allocation) wanted(demand float64) float64 {
	demand = max(demand, 0)
	return max(a.least, (1+headroom)*demand+math.Sqrt(demand)/2)
}

// slack is what the surplus is divided by: what demand varies by, and the same for all, for
// demand that is not there yet.
func (a *allocation) slack(demand float64) float64 {
	return math.Sqrt(max(demand, 0)) + math.Sqrt(a.even)/2
}

// part returns the part of an instance, by its demand.
func (a *allocation) part(demand float64) float64 {
	part := min(a.wanted(demand), a.most)
	if a.surplus > 0 {
		part += a.surplus * a.slack(demand)
	}
	return part
}
