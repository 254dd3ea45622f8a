package places

import (
	"errors"
	"fmt"
	"time"
)

// Claim is what an instance says about its places of a limit, all of it as it is: the number of
// places that it keeps, not how many more or less.
type Claim struct {
	Instance string // no other one has the same, and none had it before
	Sequence int64  // from 1, higher in each claim: older claims that arrive later change nothing

	Limit int64 // of all instances together
	Held  int64 // places that it keeps; at least InUse unless its lease has ended
	InUse int64 // calls under way: these are a fact
	Want  int64 // places that its calls need, those included that they have
	Spare int64 // places that it would keep free for calls to come, if nobody else needs them

	Life   time.Duration // of the lease; 0 to leave: what is in use stays for FinalLife
	Born   int64         // see [Grant.Born]; 0 if it was never told
	Number int64         // see [Grant.Number]; 0 if it was never told
}

// Grant is the answer to a [Claim].
type Grant struct {
	// Late says that a later claim of the instance had come before: nothing has changed, and
	// nothing else is set.
	Late bool

	// Held is how many places the instance holds now: less than are in use if others have got some
	// while its lease had ended. Calls under way go on, but others do not follow them.
	Held int64

	Target  int64 // places that it should hold: if it holds more, those that become free go back
	Crowded int64 // instances that want more than they should hold

	// Turn is how long it takes until another instance may get one of its places, because it had one
	// more than others for long enough; 0 if it has no more than others.
	Turn time.Duration

	// Ends is how long it takes until the lease of another instance ends that has not claimed of late, so
	// that it pays to claim again then; 0 if none ends soon, or nobody wants more than there is.
	Ends time.Duration

	Instances int64 // that have places or want some
	Born      int64 // when the store began to keep the limit: another value says that it had lost it

	// Number is higher than any that was told before when places were granted: the fencing number
	// of calls that begin from now on.
	Number int64
}

// What instances and stores have in common.
const (
	// DefaultLife is how long a lease lasts without an answer of the store.
	DefaultLife = 750 * time.Millisecond

	// FinalLife is how long calls count that are under way when their instance leaves.
	FinalLife = DefaultLife

	// Tenure is how long an instance has one place more than others with the same demand, if the
	// limit is no multiple of their number.
	Tenure = 250 * time.Millisecond

	// Offer is how long an instance has to claim what it was granted.
	Offer = 100 * time.Millisecond

	// Keep is how long a limit stays in a store that no instance uses.
	Keep = 24 * time.Hour

	// Young is how long a store that has just started grants nothing of a limit that it does not
	// know: it may have lost it.
	Young = 2 * time.Second

	// Most is the greatest limit.
	Most = 1 << 20
)

// Validate returns what is wrong with a claim, or nil.
func (c *Claim) Validate() error {
	var all []error
	for _, n := range []struct {
		name  string
		value int64
	}{{"limit", c.Limit}, {"held", c.Held}, {"inUse", c.InUse}, {"want", c.Want}, {"spare", c.Spare}} {
		if n.value < 0 || n.value > 2*Most {
			all = append(all, fmt.Errorf("places: %s is %d, it must be from 0 to %d", n.name, n.value, 2*Most))
		}
	}
	if c.Instance == "" || c.Sequence < 1 || c.Life < 0 || c.Born < 0 || c.Number < 0 {
		all = append(all, errors.New("places: a claim needs an instance, a sequence number from 1, and no negative time or number"))
	}
	return errors.Join(all...)
}

// Check returns what is wrong with the grant as an answer to a claim, or nil: a store must not
// grant more than the limit.
func (g *Grant) Check(c *Claim) error {
	if g.Late {
		return nil
	}
	if g.Held < 0 || g.Held > c.Limit || g.Target < 0 || g.Target > c.Limit || g.Turn < 0 || g.Ends < 0 {
		return fmt.Errorf("places: the store granted %d places of %d with %d calls under way, and a target of %d",
			g.Held, c.Limit, c.InUse, g.Target)
	}
	return nil
}
