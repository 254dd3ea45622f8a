// Package places shares a limit on calls under way among all instances of a service.
//
// A [Ledger] is what a store keeps of one limit: which instance holds how many places, and until
// when. A [Holder] is the side of one instance: it decides how many calls may be under way here, and
// what to claim. A request, a [Claim], states what is so: it may be lost, repeated, or arrive late
// and in another order. There is no +1 and −1.
//
// What holds while clocks run: all instances together hold no more places than the limit, and no
// instance has more calls under way than it holds, as its lease ends for itself before it does for
// the store. An instance that is paused for longer than a lease, and goes on, has the calls under
// way that it had: they count as soon as it has told of them, and it begins no other call before.
//
// Both sides are plain state that time is given to: they have no lock and make no request.
package places
