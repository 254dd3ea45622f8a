package simulate

import "math/rand/v2"

// dealer says which instance each call of a stream goes to.
//
// Calls are dealt in rounds: in each, every instance gets one call, in an order that is
// drawn anew. So all get the same number, and no instance gets every second value of an
// attribute that is used in turn. With a skew the first instance gets its share at random,
// and the others are dealt the rest.
type dealer struct {
	instances []*instance // in the order of the present round
	next      int         // in it
	first     *instance   // that has a share of its own; nil without a skew
	skew      float64
	random    *rand.Rand // nil if there is one instance
}

func newDealer(load Load, stream int, instances []*instance) dealer {
	d := dealer{instances: instances}
	if len(instances) == 1 {
		return d
	}
	d.instances = append([]*instance(nil), instances...)
	d.random = newRandom(load.Seed, randomDealing, stream, 0)
	if skew := load.Fleet.Skew; skew != nil {
		d.first, d.instances, d.skew = d.instances[0], d.instances[1:], *skew
	}
	d.next = len(d.instances)
	return d
}

// deal returns the instance of the next call.
func (d *dealer) deal() *instance {
	if d.random == nil {
		return d.instances[0]
	}
	if d.first != nil && d.random.Float64() < d.skew {
		return d.first
	}
	if d.next == len(d.instances) {
		d.next = 0
		d.random.Shuffle(len(d.instances), func(i, j int) {
			d.instances[i], d.instances[j] = d.instances[j], d.instances[i]
		})
	}
	d.next++
	return d.instances[d.next-1]
}
