package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
)

// Store counts tokens in memory. It is safe for concurrent use.
type Store struct {
	clock clock.Clock

	mu        sync.Mutex
	shift     time.Duration // of the clock of the store from clock
	values    map[key]*value
	sweepAt   int // number of values from which on those that have ended are removed
	instances map[string]announcement
	started   int64                       // when it was made or emptied; 0 if that is long ago
	listeners map[string]func(key string) // by instance, see Listen
	news      []news                      // to be told when mu is not held
}

// key names a value. Operations that count in the same way share one, so that a limit keeps
// its state when its mode changes.
type key struct {
	shape shape
	limit string
}

type shape uint8

const (
	bucketShape shape = iota
	windowShape
	fixedShape
	logShape
	placesShape
	balanceShape
	valuesShape
)

// value is what is used of a limit; one of its fields, by the shape of its key.
type value struct {
	expires int64 // microsecond from which on there is no value

	full    int64 // the time at which a bucket is full
	burst   burstOfAll
	windows []*ring // the one written last first
	fixed   fixedCount
	log     passLog
	places  *places.Ledger
	used    int64 // of a balance; below 0 if tokens were added to it
	values  *places.Register
}

// New returns an empty store.
func New(c clock.Clock) *Store {
	return &Store{clock: c, values: map[key]*value{}, instances: map[string]announcement{}, sweepAt: firstSweep}
}

// Exchange implements [fleet.Store]. It fails with [fleet.ErrUnavailable] if ctx has ended.
func (s *Store) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	s.mu.Lock()
	defer s.unlock()
	now := s.now()
	for i := range requests {
		r := &requests[i]
		if err := ctx.Err(); err != nil {
			replies[i] = fleet.Reply{Err: fmt.Errorf("%w: %w", fleet.ErrUnavailable, err)}
		} else if err := r.Validate(); err != nil {
			replies[i] = fleet.Reply{Err: err}
		} else {
			replies[i] = s.do(now, r)
		}
	}
}

func (s *Store) do(now int64, r *fleet.Request) fleet.Reply {
	switch r.Operation {
	case fleet.LeaseBucket:
		return s.leaseBucket(now, r)
	case fleet.LeaseWindow:
		return s.leaseWindow(now, r)
	case fleet.AskFixedWindow:
		return s.askFixedWindow(now, r)
	case fleet.AskSlidingLog:
		return s.askSlidingLog(now, r)
	case fleet.AskBalance:
		return s.askBalance(r)
	case fleet.ClaimPlaces:
		return s.claimPlaces(now, r)
	case fleet.ClaimValuePlaces:
		return s.claimValuePlaces(now, r)
	default:
		return s.askBucket(now, r)
	}
}

// now is the time of the store in microseconds.
func (s *Store) now() int64 { return s.clock.Now().Add(s.shift).Time().UnixMicro() }

// firstSweep is the number of values from which on a store looks for some that have ended.
const firstSweep = 1024

// value returns the value of a key, which is nil if nothing is used.
func (s *Store) value(now int64, k key) *value {
	v := s.values[k]
	if v != nil && v.expires <= now {
		delete(s.values, k)
		return nil
	}
	return v
}

// put keeps a value until nothing of it is used any more, which is after used
// microseconds, and for keep longer.
func (s *Store) put(now int64, k key, v *value, used int64, keep time.Duration) {
	v.expires = now + expiry(used, keep)*1000
	s.values[k] = v
	if len(s.values) >= s.sweepAt {
		s.sweep(now)
		s.sweepAt = max(firstSweep, 2*len(s.values))
	}
}

func (s *Store) sweep(now int64) {
	for k, v := range s.values {
		if v.expires <= now {
			delete(s.values, k)
		}
	}
}

// expiry is how many milliseconds a value stays that is used for some microseconds.
func expiry(used int64, keep time.Duration) int64 {
	return max(1, (used+999)/1000+keep.Milliseconds())
}

// Flush loses all that the store knows, as a server does that is restarted empty.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.values)
	clear(s.instances)
	s.started = s.now()
}

// Shift makes the clock of the store jump by d, forward or back.
func (s *Store) Shift(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shift += d
}

// Len returns the number of values of limits of which something is used, or was of late.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(s.now())
	return len(s.values)
}

// Close implements [fleet.Backend]. It does nothing: other members may use the store.
func (s *Store) Close() error { return nil }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
