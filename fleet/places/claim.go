package places

import "time"

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
	// FinalLife is how long calls count that are under way when their instance leaves.
	FinalLife = 750 * time.Millisecond

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
)
