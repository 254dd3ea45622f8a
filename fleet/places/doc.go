// Package places is what an instance of a service and the store of the fleet say to each other about a
// limit on calls under way in all instances together: a store of one's own answers a [Claim] with a
// [Grant], of a limit for each value a [ValueClaim] with a [ValueGrant].
//
// A claim states what is so: it may be lost, repeated, or arrive late and in another order. There is no
// +1 and −1. fleet/memory and the scripts of fleet/redis are stores.
package places
