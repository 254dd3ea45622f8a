// Package exchange is what an instance of a fleet exchanges with the backend: requests of its limits in batches, and
// announcements of itself. It knows whether the backend answers. It knows no kind of limit: these are its [Limits].
package exchange

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Exchange is what an instance of a fleet exchanges with the backend: requests in batches, and announcements. It
// knows whether the backend answers. Its mutex guards all limits of the instance.
type Exchange struct {
	config fleet.Config
	clock  clock.Clock
	log    *slog.Logger
	limits Limits

	session     string            // see [fleet.Instance.Session]
	partitioned fleet.Partitioned // the backend, if it is one; else nil

	due  atomic.Int64  // the instant at which something is to be done
	wake chan struct{} // receives when that has become earlier

	Mu          sync.Mutex // guards what follows, and all limits
	random      *mathrand.Rand
	running     bool          // somebody steps the member
	hasLeft     bool          // Run has ended, and was not called again
	used        int           // limits that there are
	Partitions  []*Partition  // by number, at least one
	count       int           // of instances, as known or expected; 0 if it is not known
	counted     int           // by the last announcement; 0 if there was none
	knownSince  clock.Instant // when the instance was new to the backend, or another one left
	announced   int           // times
	connection  connection
	refusing    int  // limits for which the store does not count
	announcing  bool // an announcement is under way
	announceAt  clock.Instant
	announceErr error // what the backend said to the last announcement
	unannounced int   // announcements without an answer since the last one that has one

	answered          chan struct{} // closed when the backend has answered once
	announcementEnded chan struct{} // closed when announcing has ended

	batches    []*Batch      // made in this step
	underWay   []*Batch      // sent and not ended, in the order in which they were sent
	probed     clock.Instant // when something was sent that the store answers if any of its servers does
	calls      []func()      // to be made when the mutex is released
	statistics struct{ batches, requests, lost int64 }
}

// NewExchange returns the exchange of an instance that has announced nothing yet and starts nothing. The seed is
// that of random numbers: of the name, if there is none, and of jitter.
func NewExchange(config fleet.Config, c clock.Clock, log *slog.Logger, seed uint64, limits Limits) *Exchange {
	config.Timeout = cmp.Or(max(0, config.Timeout), DefaultTimeout)
	config.Instances = max(0, config.Instances)
	x := &Exchange{
		limits: limits,
		clock:  c, log: log, wake: make(chan struct{}, 1), running: config.Manual, session: rand.Text(),
		random:     mathrand.New(mathrand.NewPCG(seed, uint64(os.Getpid()))), //nolint:gosec // of jitter, not of secrets
		announceAt: Never,
		connection: connection{timeout: config.Timeout},
		count:      config.Instances,
		Partitions: []*Partition{{}},

		answered:          make(chan struct{}),
		announcementEnded: make(chan struct{}),
	}
	if config.Manual {
		x.random = mathrand.New(mathrand.NewPCG(seed, 0)) //nolint:gosec // so that simulations can be repeated
	}
	if config.Instance == "" {
		host, _ := os.Hostname()
		config.Instance = fmt.Sprintf("%s-%d-%08x", cmp.Or(host, "unknown"), os.Getpid(), x.random.Uint32())
	}
	x.config = config
	x.partitioned, _ = config.Backend.(fleet.Partitioned)
	x.due.Store(int64(Never))
	return x
}

// Instance returns the name of this instance.
func (x *Exchange) Instance() string { return x.config.Instance }

// Answered returns a channel that is closed when the backend has answered once.
func (x *Exchange) Answered() <-chan struct{} { return x.answered }

// CheckPlaces returns an error if the backend does not count, so that instances cannot share limits on
// calls under way: [fleet.ErrUnsupported].
func (x *Exchange) CheckPlaces() error {
	if x.CanCount() {
		return nil
	}
	return fmt.Errorf("%w: a limit on calls under way needs a backend that counts: use Redis or Valkey, or remove scope", fleet.ErrUnsupported)
}

// CanCount says whether the backend is a store.
func (x *Exchange) CanCount() bool {
	if x.config.Backend == nil {
		return x.config.Manual
	}
	_, ok := x.config.Backend.(fleet.Store)
	return ok
}

// Join counts a limit, and has the instance announced at once if it was not announced before.
func (x *Exchange) Join(now clock.Instant) {
	x.used++
	if x.announceAt == Never {
		x.announceAt = now
	}
}

// Left counts a limit that is gone.
func (x *Exchange) Left() {
	x.used--
	x.restIfUnused()
}

// restIfUnused ends announcements when there is no limit any more.
func (x *Exchange) restIfUnused() {
	if x.used == 0 {
		x.announceAt = Never
	}
}

// Jitter returns a duration within a quarter of d.
func (x *Exchange) Jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(x.random.Int64N(int64(d/2)+1))
}

// What follows is told to limits, with the mutex held.

// Running says whether somebody steps the instance.
func (x *Exchange) Running() bool { return x.running }

// IsOut says whether the backend does not answer, and OutSince since when, or since when it answers again.
func (x *Exchange) IsOut() bool { return x.connection.out }

// OutSince is for IsOut.
func (x *Exchange) OutSince() clock.Instant { return x.connection.since }

// IsInDoubt says whether the backend as a whole may not answer, so that a request without an answer
// tells nothing of its limit.
func (x *Exchange) IsInDoubt() bool { return x.connection.out || x.connection.suspect != 0 }

// Instances returns how many there are, as known or expected; 0 if that is not known.
func (x *Exchange) Instances() int { return x.count }

// Sharers is by how many instances a limit is divided in an outage, 0 if that is not known. Of a
// limit of which this instance knows nothing, that is the number of instances that the program
// expects, or that were known when the whole backend failed.
func (x *Exchange) Sharers(isNew bool, onOutage fleet.OnOutage) int {
	if isNew && onOutage != fleet.OutageShare && x.config.Instances == 0 && !x.connection.out {
		return 0
	}
	return x.count
}

// Known returns how many instances the backend has told, 0 if it never has, and since when this one knows all.
func (x *Exchange) Known() (instances int, since clock.Instant) {
	if x.counted == 0 {
		return 0, 0
	}
	return x.count, x.knownSince
}

// Random returns random numbers.
func (x *Exchange) Random() *mathrand.Rand { return x.random }

// Later has a function called when the mutex is released.
func (x *Exchange) Later(call func()) { x.calls = append(x.calls, call) }

// What follows never changes, and may be called without the mutex.

// Timeout returns how long the backend may take for an answer.
func (x *Exchange) Timeout() time.Duration { return x.config.Timeout }

// Expected returns how many instances the program expects, 0 if it does not say.
func (x *Exchange) Expected() int { return x.config.Instances }

// IsManual says whether the instance is stepped by whoever has the time.
func (x *Exchange) IsManual() bool { return x.config.Manual }

// Now returns the time.
func (x *Exchange) Now() clock.Instant { return x.clock.Now() }

// TimeOf returns the time of an instant.
func (x *Exchange) TimeOf(now clock.Instant) time.Time { return clock.TimeOf(x.clock, now) }

// ClaimID is the name of this instance in claims: nobody had it before, or has it too.
func (x *Exchange) ClaimID() string {
	if x.config.Manual {
		return x.config.Instance
	}
	return x.session
}

// Status tells how it is; nothing of limits. The mutex is held.
func (x *Exchange) Status() fleet.Status {
	c := &x.connection
	known, _ := x.Known()
	return fleet.Status{
		Instance: x.config.Instance, Connected: c.known && !c.out, Since: c.since,
		Err: cmp.Or(c.err, x.announceErr), Outages: c.outages, Latency: c.mean, Instances: known,
		Batches: x.statistics.batches, Requests: x.statistics.requests, Lost: x.statistics.lost,
		Refusing: x.refusing,
	}
}

// Backend returns the backend, nil if there is none.
func (x *Exchange) Backend() fleet.Backend { return x.config.Backend }
