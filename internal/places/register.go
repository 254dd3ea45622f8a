package places

import "maps"

// Register is what a store keeps of a limit for each value. The zero value is one of which the store
// knows nothing. Times are microseconds of the store's clock.
type Register struct {
	living map[string]int64            // instances, until when they live
	values map[string]map[string]share // by value, then by instance

	born   int64 // when it was made
	settle int64 // nothing is granted before
	number int64 // the highest that was told
}

// share is what an instance has of a value.
type share struct {
	held  int64
	seq   int64
	limit int64 // by which it asks
}

// Claim takes a claim, and returns the answer. The store is young if it has started of late.
func (r *Register) Claim(now int64, young bool, c *ValueClaim) ValueGrant {
	life := c.Life.Microseconds()
	switch {
	case r.born == 0:
		r.born, r.living, r.values = now, map[string]int64{}, map[string]map[string]share{}
		if c.Born != 0 || young {
			r.settle = now + settling(life)
		}
	case c.Number > r.number && now >= r.settle: // the last of what it knew is lost, as after a failover
		r.born, r.settle = now, now+settling(life)
	}
	r.number = max(r.number, c.Number)
	g := ValueGrant{IsNew: r.living[c.Instance] <= now, Born: r.born, Number: r.number}
	if c.Value == "" {
		r.live(now, life, c)
		return g
	}
	if g.IsNew {
		r.living[c.Instance] = now + life
	}
	if s, has := r.values[c.Value][c.Instance]; has && c.Sequence <= s.seq {
		return ValueGrant{Late: true}
	}
	limit, others := r.others(now, c)
	g.Granted = max(-c.InUse, min(c.Want, limit-others-c.InUse))
	if now < r.settle {
		g.Granted = min(0, g.Granted)
	}
	if g.Granted > 0 {
		r.number = max(r.number+1, now)
		g.Number = r.number
	}
	r.put(c, c.InUse+max(0, g.Granted))
	return g
}

// live notes that an instance lives, or leaves: then its calls under way count for a while.
func (r *Register) live(now, life int64, c *ValueClaim) {
	maps.DeleteFunc(r.living, func(_ string, until int64) bool { return until <= now })
	switch {
	case life > 0:
		r.living[c.Instance] = now + life
	case c.InUse > 0:
		r.living[c.Instance] = now + FinalLife.Microseconds()
	default:
		delete(r.living, c.Instance)
	}
}

// others returns the limit, which is the lowest by which an instance asks that has places, and how
// many places the others have. What those have that do not live is taken from them.
func (r *Register) others(now int64, c *ValueClaim) (limit, held int64) {
	limit = c.Limit
	for id, s := range r.values[c.Value] {
		switch {
		case id == c.Instance:
		case r.living[id] <= now:
			delete(r.values[c.Value], id)
		default:
			limit, held = min(limit, s.limit), held+s.held
		}
	}
	return limit, held
}

func (r *Register) put(c *ValueClaim, held int64) {
	of := r.values[c.Value]
	if held > 0 {
		if of == nil {
			of = map[string]share{}
			r.values[c.Value] = of
		}
		of[c.Instance] = share{held, c.Sequence, c.Limit}
	} else {
		delete(of, c.Instance)
	}
	if len(of) == 0 {
		delete(r.values, c.Value)
	}
}
