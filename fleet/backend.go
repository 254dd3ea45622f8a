package fleet

import (
	"context"
	"math"
	"time"

	"github.com/penstock-go/penstock/fleet/places"
)

// Backend is what the instances of a fleet have in common. Its methods are called
// concurrently, and end with their context, with its error.
type Backend interface {
	// Announce says that an instance is alive and what it uses, and returns what is known of
	// the fleet, this instance included. Instances that have not announced themselves for
	// [AnnounceLife] are not part of it. withInstances demands [Fleet.Instances], which may
	// cost more than their number. The error is [ErrNameTaken] if the instance that has the ID
	// announces another Session: then nothing is announced.
	Announce(ctx context.Context, self Instance, withInstances bool) (Fleet, error)

	// Leave says that an instance ends. An instance whose name is taken does not leave.
	Leave(ctx context.Context, id string) error

	// Close ends connections. It does not wait for calls under way.
	Close() error
}

// Store is a [Backend] that counts, on its own clock.
type Store interface {
	Backend

	// Exchange makes requests, each by itself and in any order, in as few round trips as it
	// can. It fills in the reply of each request, or its Err. It never makes a request twice
	// when it cannot know whether the first one was made. It does not keep the slices.
	Exchange(ctx context.Context, requests []Request, replies []Reply)
}

// Partitioned is a [Store] that may keep limits on several servers. A member sends requests to
// different servers in batches of their own, so that a server that hangs does not delay the
// answers of the others. Both methods return at once, and may be called concurrently.
type Partitioned interface {
	Store

	// Partitions returns how many servers have limits, as far as that is known, at least 1. It
	// may change at any time.
	Partitions() int

	// Partition returns the number of the server that has the limit of a key, from 0 on. It
	// only decides which requests are sent together: [Store.Exchange] makes a request wherever
	// the limit is.
	Partition(key string) int
}

// Notifier is a [Store] that tells instances at once that places were granted to them. Without it
// they learn of it when they claim again.
type Notifier interface {
	Store

	// Listen has f called with the key of each limit of which places are granted to an instance,
	// by its name in claims, until stop is called. It returns at once. f does not block for long;
	// calls may be missing, and come more often than places are granted.
	Listen(instance string, f func(key string)) (stop func())
}

// AnnounceLife is how long an announcement lasts. An instance announces itself every second.
const AnnounceLife = 5 * time.Second

// Fleet is what a backend knows of the instances.
type Fleet struct {
	Count     int        // of instances
	Instances []Instance // by ID; nil unless demanded

	// IsNew says that this instance was not part of the fleet before: it has not announced
	// itself for [AnnounceLife], or the backend has lost what it knew.
	IsNew bool
}

// Instance is one instance of a service, as it announces itself.
type Instance struct {
	ID     string
	Limits []Use // at most [MaxUses], those with the greatest demand

	// Session tells apart instances that have been given the same ID: each [Member] has one of
	// its own. Backends return none in [Fleet.Instances].
	Session string
}

// Use is what an instance uses of a limit, of late.
type Use struct {
	Key    string
	Demand float64 // tokens per second that calls asked for
	Passed float64 // tokens per second that passed

	// Reserved is the fraction of the limit, from 0 to 1, that no other instance may use; of
	// [ModeShare]. Backends keep it to the last bit, or round it up.
	Reserved float64
}

// MaxUses is how many limits an instance announces, and so how many it can have in [ModeShare]: of
// more, those that were made last pass a hundredth of an even part, which is logged and in their
// status.
const MaxUses = 100

// Operation is what a request asks of a [Store].
type Operation uint8

// The operations. All of them happen in one step, on the clock of the store in whole
// microseconds. A key without a value is a limit of which nothing is used; keys end by
// themselves when nothing is used any more.
const (
	// LeaseBucket leases tokens of a bucket, see [ModeLease]. The bucket is kept as the time
	// at which it will be full, so that it stays right when the limit changes.
	LeaseBucket Operation = iota

	// LeaseWindow leases tokens of the present bucket of a window, or of the next one, see
	// [ModeWindow].
	LeaseWindow

	// AskFixedWindow, AskSlidingLog, AskTokenBucket and AskThrottle take Want tokens or none,
	// see [ModeAsk]: by a window of the calendar, a log of all that passed in the last
	// window, a token bucket, and the generic cell rate algorithm, which may grant tokens up
	// to MaxWait ahead.
	AskFixedWindow
	AskSlidingLog
	AskTokenBucket
	AskThrottle

	// AskBalance takes Want tokens or none of a balance, which has the limit of the terms at first, and
	// of which nothing flows back by itself: a negative Want adds tokens, also beyond the limit. Owed
	// is taken in any case, so a balance can be below 0. It is kept for ever. A balance of more than
	// [MaxTokens] is an error.
	AskBalance

	// ClaimPlaces states what an instance has of a limit on calls under way, see [places.Ledger].
	// Only the key of the terms counts.
	ClaimPlaces

	// ClaimValuePlaces states what an instance has of one value of a limit on calls under way that is
	// for each value, see [places.Register]. Only the key of the terms counts, which is that of the register.
	ClaimValuePlaces
)

// Never is a [Reply.Retry]: so many tokens are never there, however long one waits.
const Never = time.Duration(math.MaxInt64)

// Request is a request for tokens of a limit.
type Request struct {
	Operation Operation
	Terms     Terms

	Want int64 // tokens; 0 to only return or pay some; below 0 returns some, of Ask operations
	Back int64 // tokens that were granted before, as of BackTo, and not used
	// Owed is tokens that passed without having been granted; of Ask operations but AskBalance, as far
	// as the limit has so many left.
	Owed int64

	// OwedBefore is Owed of the buckets of a window before the present one, the latest first; of
	// LeaseWindow.
	OwedBefore []int64

	// BackTo is the [Reply.Bucket] of the grant that Back is of; of LeaseWindow. A negative
	// Want of AskFixedWindow has it too, or 0 for the present window.
	BackTo int64

	// At is the time by the wall clock of the instance; of terms with a Calendar. A store may go by its
	// own clock, which should differ by less than a window.
	At time.Time

	// Age is how long ago Owed passed; of AskSlidingLog. A store may count it for up to a 64th of the window longer.
	Age time.Duration

	// Quantum is the least number of tokens that is worth a grant: if less are there, they
	// are granted for later. Of leases.
	Quantum int64

	// Queue is how far ahead tokens of a bucket may be granted for later.
	Queue time.Duration

	// Ahead has tokens granted of the next bucket of a window when the present one ends
	// within this time.
	Ahead time.Duration

	// Seen is the last [Reply.State]: a store that has lost its state learns from it.
	Seen string

	// Places is what an instance claims; of ClaimPlaces, else nil.
	Places *places.Claim

	// Value is what an instance claims of a value; of ClaimValuePlaces, else nil.
	Value *places.ValueClaim

	// Keep is how much longer a key stays than until nothing is used any more.
	Keep time.Duration
}

// Reply is the answer to a [Request].
type Reply struct {
	Err error // [ErrUnavailable], or what the store said; nothing else is set then

	Granted int64         // tokens, at most Want
	Delay   time.Duration // after which they may be used
	Valid   time.Duration // after which they may not be used any more, from now; of LeaseWindow
	Retry   time.Duration // when nothing was granted: how long it takes until something can be, or [Never]
	Bucket  int64         // that the tokens count in, as the time at which it begins; of windows
	State   string        // see [Request.Seen]

	Places places.Grant // of ClaimPlaces

	Value places.ValueGrant // of ClaimValuePlaces

	// Of Ask operations, as redis-cell tells it:
	Limit     int64         // the most that can pass at once
	Remaining int64         // what could pass now; of windows below 0 if more is used, by others with a greater limit, of balances if more is owed
	Reset     time.Duration // until nothing is used any more
}
