package places

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// ValueClaim is what an instance says about its places of one value of a limit that is for each
// value, all of it as it is.
//
// Instances live or do not for all values of a [Register] together, so that what they say of it does
// not grow with the number of values.
type ValueClaim struct {
	Instance string // no other one has the same, and none had it before
	Sequence int64  // from 1, higher in each claim: older claims that arrive later change nothing

	Value string // "": it only says that the instance lives
	Limit int64
	InUse int64 // calls under way, which are a fact; without a value, of all of them
	Want  int64 // calls that wait for an answer

	Life   time.Duration // for which the instance lives without saying so again; 0: it leaves
	Born   int64         // see [ValueGrant.Born]; 0 if it was never told
	Number int64         // see [ValueGrant.Number]; 0 if it was never told
}

// ValueGrant is the answer to a [ValueClaim].
type ValueGrant struct {
	// Late says that a later claim of the instance had come before: nothing has changed, and
	// nothing else is set.
	Late bool

	// IsNew says that the instance did not live, as far as the store knew: it has to tell of all values
	// that it has places of.
	IsNew bool

	// Granted is how many places calls to come may have beside those in use, at most Want. If it is
	// negative, all instances together have more places than the limit: that many of those in use are not to
	// be used again, at most all.
	Granted int64

	Born   int64 // when the store began to keep the register: another value says that it had lost it
	Number int64 // higher than any that was told before: the fencing number of the calls granted
}

// Validate returns what is wrong with a claim, or nil.
func (c *ValueClaim) Validate() error {
	var all []error
	for _, n := range []struct {
		name  string
		value int64
	}{{"limit", c.Limit}, {"inUse", c.InUse}, {"want", c.Want}} {
		if n.value < 0 || n.value > 2*Most {
			all = append(all, fmt.Errorf("places: %s is %d, it must be from 0 to %d", n.name, n.value, 2*Most))
		}
	}
	if c.Instance == "" || c.Sequence < 1 || c.Life < 0 || c.Born < 0 || c.Number < 0 {
		all = append(all, errors.New("places: a claim needs an instance, a sequence number from 1, and no negative time or number"))
	}
	return errors.Join(all...)
}

// Check returns what is wrong with the grant as an answer to a claim, or nil.
func (g *ValueGrant) Check(c *ValueClaim) error {
	if g.Granted < -c.InUse || g.Granted > c.Want || g.Granted > 0 && g.Granted+c.InUse > c.Limit {
		return fmt.Errorf("places: the store granted %d places of %d to an instance that has %d and asks for %d",
			g.Granted, c.Limit, c.InUse, c.Want)
	}
	return nil
}

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
