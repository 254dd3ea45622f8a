package simulate

import "math/rand/v2"

// dealer says which instance each call of a stream goes to.
//
// Calls are dealt in rounds: in each, every instance gets one call, in an order that is
// drawn anew. So all get the same number, and no instance gets every second value of an
// attribute that is used in turn. With a skew the first instance gets its share at random,
// and the others are dealt the rest.
type dealer struct {
	dealt  []int    // the numbers of the instances that calls are dealt to, in the order of the present round
	next   int      // in it
	skew   *float64 // the share that the first instance has beside the rounds; nil without one
	random *rand.Rand
}

func newDealer(load Load, stream, instances int) dealer {
	d := dealer{skew: load.Fleet.Skew}
	for number := range instances {
		d.dealt = append(d.dealt, number)
	}
	if instances == 1 {
		return d
	}
	d.random = newRandom(load.Seed, randomDealing, stream, 0)
	if d.skew != nil {
		d.dealt = d.dealt[1:]
	}
	d.next = len(d.dealt)
	return d
}

// deal returns the number of the instance of the next call.
func (d *dealer) deal() int {
	if d.random == nil || d.skew != nil && d.random.Float64() < *d.skew {
		return 0
	}
	if d.next == len(d.dealt) {
		d.next = 0
		d.random.Shuffle(len(d.dealt), func(i, j int) { d.dealt[i], d.dealt[j] = d.dealt[j], d.dealt[i] })
	}
	d.next++
	return d.dealt[d.next-1]
}
