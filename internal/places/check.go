package places

import (
	"errors"
	"fmt"
)

// Check returns what is wrong with a claim, or nil.
func Check(c *Claim) error {
	return errors.Join(checkCounts([]count{{"limit", c.Limit}, {"held", c.Held}, {"inUse", c.InUse}, {"want", c.Want}, {"spare", c.Spare}}),
		checkSender(c.Instance, c.Sequence, int64(c.Life), c.Born, c.Number))
}

// CheckValue returns what is wrong with a claim of places of a value, or nil.
func CheckValue(c *ValueClaim) error {
	return errors.Join(checkCounts([]count{{"limit", c.Limit}, {"inUse", c.InUse}, {"want", c.Want}}),
		checkSender(c.Instance, c.Sequence, int64(c.Life), c.Born, c.Number))
}

// CheckAnswer returns what is wrong with the answer to a claim, or nil: a store must not grant more
// than the limit.
func CheckAnswer(c *Claim, g *Grant) error {
	if g.Late {
		return nil
	}
	if g.Held < 0 || g.Held > c.Limit || g.Target < 0 || g.Target > c.Limit || g.Turn < 0 || g.Ends < 0 {
		return fmt.Errorf("places: the store granted %d places of %d with %d calls under way, and a target of %d",
			g.Held, c.Limit, c.InUse, g.Target)
	}
	return nil
}

// CheckValueAnswer returns what is wrong with the answer to a claim of places of a value, or nil.
func CheckValueAnswer(c *ValueClaim, g *ValueGrant) error {
	if g.Granted < -c.InUse || g.Granted > c.Want || g.Granted > 0 && g.Granted+c.InUse > c.Limit {
		return fmt.Errorf("places: the store granted %d places of %d to an instance that has %d and asks for %d",
			g.Granted, c.Limit, c.InUse, c.Want)
	}
	return nil
}

// count is a number of places in a claim.
type count struct {
	name  string
	value int64
}

func checkCounts(counts []count) error {
	var all []error
	for _, n := range counts {
		if n.value < 0 || n.value > 2*Most {
			all = append(all, fmt.Errorf("places: %s is %d, it must be from 0 to %d", n.name, n.value, 2*Most))
		}
	}
	return errors.Join(all...)
}

func checkSender(instance string, sequence, life, born, number int64) error {
	if instance == "" || sequence < 1 || min(life, born, number) < 0 {
		return errors.New("places: a claim needs an instance, a sequence number from 1, and no negative time or number")
	}
	return nil
}
