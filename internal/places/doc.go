// Package places shares a limit on calls under way among all instances of a service.
//
// A [Ledger] is what a store keeps of one limit: which instance holds how many places, and until
// when. A [Holder] is the side of one instance: it decides how many calls may be under way here, and
// what to claim.
//
// What holds while clocks run: all instances together hold no more places than the limit, and no
// instance has more calls under way than it holds, as its lease ends for itself before it does for
// the store. An instance that is paused for longer than a lease, and goes on, has the calls under
// way that it had: they count as soon as it has told of them, and it begins no other call before.
//
// Both sides are plain state that time is given to: they have no lock and make no request.
package places

import "github.com/penstock-go/penstock/fleet/places"

// What instances and stores say to each other.
type (
	// Claim is a request of a [Holder].
	Claim = places.Claim

	// Grant is the answer.
	Grant = places.Grant

	// ValueClaim is a request about places of one value.
	ValueClaim = places.ValueClaim

	// ValueGrant is the answer.
	ValueGrant = places.ValueGrant
)

// How long all of that lasts.
const (
	FinalLife = places.FinalLife
	Tenure    = places.Tenure
	Offer     = places.Offer
	Keep      = places.Keep
	Young     = places.Young

	// DefaultLife is how long a lease lasts without an answer of the store.
	DefaultLife = FinalLife
)

// Most is the greatest limit.
const Most = 1 << 20

// settling is for how long a store grants nothing of a limit that it has lost, in microseconds: for the
// life of a lease, also if the first one to come leaves.
func settling(life int64) int64 {
	if life == 0 {
		return FinalLife.Microseconds()
	}
	return life
}
