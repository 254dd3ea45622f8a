package places

import "time"

// ValueClaim is what an instance says about its places of one value of a limit that is for each
// value, all of it as it is.
//
// Instances live or do not for all values of a limit together, so that what they say of it does
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
