package sharing

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
	"github.com/penstock-go/penstock/internal/sharing/packed"
	"github.com/penstock-go/penstock/internal/sharing/usage"
)

// Member is one instance of a fleet: it leases tokens of limits from the backend, ahead of
// demand, and knows whether the backend answers. Calls take tokens from a [Budget], ask with
// an [Asker], or are limited to a [Share].
//
// Run is its goroutine. Who has a clock of their own calls Step when it is due, sends the
// batches, and calls Deliver or Fail for each. All methods may be called concurrently.
type Member struct {
	config fleet.Config
	clock  clock.Clock
	log    *slog.Logger

	session     string            // see [fleet.Instance.Session]
	partitioned fleet.Partitioned // the backend, if it is one; else nil

	woken       atomic.Pointer[Budget] // budgets that calls have woken since the last step
	wokenPlaces atomic.Pointer[Places] // the same of places
	due         atomic.Int64           // the instant at which Step is to be called
	wake        chan struct{}          // receives when that has become earlier

	mu          sync.Mutex // guards what follows, and the control of all budgets
	random      *mathrand.Rand
	running     bool // somebody steps the member
	hasLeft     bool // Run has ended, and was not called again
	budgets     []*Budget
	askers      []*Asker
	shares      []*Share
	groups      []*Group
	places      []*Places
	values      []placesByValue
	sequence    int64         // of the last claim of places of values
	queue       dueQueue      // of the budgets
	partitions  []*partition  // by number, at least one
	count       int           // of instances, as known or expected; 0 if it is not known
	counted     int           // by the last announcement; 0 if there was none
	knownSince  clock.Instant // when the instance was new to the backend, or another one left
	announced   int           // times
	connection  connection
	refusing    int  // limits for which the store does not count
	announcing  bool // an announcement is under way
	announceAt  clock.Instant
	announceErr error       // what the backend said to the last announcement
	unannounced int         // announcements without an answer since the last one that has one
	uses        []fleet.Use // see usesOf
	usesAt      clock.Instant

	answered          chan struct{} // closed when the backend has answered once
	announcementEnded chan struct{} // closed when announcing has ended

	batches    []*Batch      // made in this step
	underWay   []*Batch      // sent and not ended, in the order in which they were sent
	probed     clock.Instant // when something was sent that the store answers if any of its servers does
	calls      []func()      // to be made when the mutex is released
	statistics struct{ batches, requests, lost int64 }
}

// NewMember returns a member that has announced nothing yet and starts nothing. The seed is
// that of random numbers: of the name, if there is none, and of jitter.
func NewMember(config fleet.Config, c clock.Clock, log *slog.Logger, seed uint64) *Member {
	config.Timeout = cmp.Or(max(0, config.Timeout), fleet.DefaultTimeout)
	config.Instances = max(0, config.Instances)
	m := &Member{
		clock: c, log: log, wake: make(chan struct{}, 1), running: config.Manual, session: rand.Text(),
		random:     mathrand.New(mathrand.NewPCG(seed, uint64(os.Getpid()))), //nolint:gosec // of jitter, not of secrets
		announceAt: never,
		connection: connection{timeout: config.Timeout},
		count:      config.Instances,
		partitions: []*partition{{}},

		answered:          make(chan struct{}),
		announcementEnded: make(chan struct{}),
	}
	if config.Manual {
		m.random = mathrand.New(mathrand.NewPCG(seed, 0)) //nolint:gosec // so that simulations can be repeated
	}
	if config.Instance == "" {
		host, _ := os.Hostname()
		config.Instance = fmt.Sprintf("%s-%d-%08x", cmp.Or(host, "unknown"), os.Getpid(), m.random.Uint32())
	}
	m.config = config
	m.partitioned, _ = config.Backend.(fleet.Partitioned)
	m.due.Store(int64(never))
	return m
}

// Of returns the member that an engine has made; nil if there is none, or if it is another one.
func Of(m fleet.Member) *Member {
	member, _ := m.(*Member)
	return member
}

// Instance returns the name of this instance.
func (m *Member) Instance() string { return m.config.Instance }

// Answered returns a channel that is closed when the backend has answered once.
func (m *Member) Answered() <-chan struct{} { return m.answered }

// Budget returns a budget of a limit, in [fleet.ModeLease] or [fleet.ModeWindow]. Release ends it.
func (m *Member) Budget(terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, now clock.Instant) *Budget {
	return m.newBudget(nil, terms, mode, onOutage, now)
}

func (m *Member) newBudget(g *usage.Tally, terms fleet.Terms, mode fleet.Mode, onOutage fleet.OnOutage, now clock.Instant) *Budget {
	b := &Budget{member: m, group: g, control: control{
		terms: terms, mode: mode, onOutage: onOutage,
		queueIndex: -1, due: never, looked: now, lastPass: now.Add(-longAgo), lastCall: now, requests: requestBurst,
		isFull: g == nil, // values of which nothing is known pass no more than one call on debt
	}}
	if mode == fleet.ModeLease {
		b.last.until = never
	}
	if mode == fleet.ModeWindow {
		b.passes = usage.NewPassLog(terms.Window, terms.Buckets, now)
	}
	b.setMost()
	b.packed.Store(uint64(packed.Pack(now.Add(packed.Forever), true, 0)))
	m.mu.Lock()
	defer m.unlock(now)
	b.place = len(m.budgets)
	m.budgets = append(m.budgets, b)
	m.announceSoon(now)
	switch {
	case !m.canCount():
		b.refusedBy(now, fmt.Errorf("%w: mode %s needs a store that counts", fleet.ErrUnsupported, mode))
		b.outage.AskAt = never
	case m.connection.out:
		b.beginOutage(now, nil)
	}
	b.look(now)
	return b
}

// longAgo is longer ago than anything that matters.
const longAgo = 10 * 365 * 24 * time.Hour

// Asker returns what asks the backend for each call, by one of the operations whose names
// begin with Ask. Release ends it.
func (m *Member) Asker(terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage) *Asker {
	return m.newAsker(nil, terms, operation, onOutage)
}

func (m *Member) newAsker(g *usage.Tally, terms fleet.Terms, operation fleet.Operation, onOutage fleet.OnOutage) *Asker {
	now := m.clock.Now()
	a := &Asker{member: m, group: g, terms: completed(terms, operation), operation: operation, onOutage: onOutage}
	a.passes = a.newPasses(now)
	m.mu.Lock()
	defer m.unlock(now)
	a.counted = now
	a.place = len(m.askers)
	m.askers = append(m.askers, a)
	m.announceSoon(now)
	switch {
	case !m.canCount():
		a.refusedBy(now, fmt.Errorf("%w: mode %s needs a store that counts", fleet.ErrUnsupported, fleet.ModeAsk))
		a.outage.AskAt = never
	case m.connection.out:
		a.beginOutage(now)
	}
	return a
}

// CheckPlaces returns an error if the backend does not count, so that instances cannot share limits on
// calls under way: [fleet.ErrUnsupported].
func (m *Member) CheckPlaces() error {
	if m.canCount() {
		return nil
	}
	return errNoCount
}

// canCount says whether the backend is a store.
func (m *Member) canCount() bool {
	if m.config.Backend == nil {
		return m.config.Manual
	}
	_, ok := m.config.Backend.(fleet.Store)
	return ok
}

// announceSoon has the instance announced at once if it was not announced before.
func (m *Member) announceSoon(now clock.Instant) {
	if m.announceAt == never {
		m.announceAt = now
	}
}

// removeBudget forgets a budget of which nothing is left.
func (m *Member) removeBudget(b *Budget) {
	if b.place < 0 {
		return
	}
	if b.outage.Err != nil {
		m.noteAccepted()
		b.group.Accepted()
	}
	m.queue.set(b, never)
	removeFrom(&m.budgets, b)
	m.restIfUnused()
}

// restIfUnused ends announcements when there is no limit any more.
func (m *Member) restIfUnused() {
	if len(m.budgets)+len(m.askers)+len(m.shares)+len(m.groups)+len(m.places) == 0 {
		m.announceAt = never
	}
}

// jitter returns a duration within a quarter of d.
func (m *Member) jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(m.random.Int64N(int64(d/2)+1))
}
