package hotparam

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/prepaid"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/internal/warnonce"
	"github.com/penstock-go/penstock/rule"
)

// states is the state of the values of a rule: of all its versions, and of all resources
// that it guards. So its size does not depend on how many resources there are.
type states struct {
	hasher  *valuehash.Hasher
	seed    uint64 // of the salts
	salts   atomic.Uint64
	main    slots // of all values but those that have states of their own
	hottest hottest

	penalties atomic.Pointer[penalties] // nil until a version of the rule has a penalty
	timed     timedCalls

	quietUntil  atomic.Int64 // an instant: that places were given back is not told before
	withoutSlot atomic.Int64 // calls whose value found no slot, up to toldAfter

	balances prepaid.Bound  // of rules with a balance of each value
	holders  *table.Holders // what sources have of the last of these; nil if there are none

	fleetMu sync.Mutex
	fleet   *fleetStates  // nil unless the rule limits values in the fleet; fleetMu guards it
	places  *placesStates // nil unless it limits their calls under way there; fleetMu guards it

	statsMu sync.Mutex
	// statsMu guards the rest.
	stats    table.Stats // of main
	statsFor clock.Instant
}

// statsAt returns the counts of the table. It reads the table once for all limiters that
// ask for an instant.
func (s *states) statsAt(now clock.Instant) table.Stats {
	s.statsMu.Lock()
	defer s.statsMu.Unlock()
	if t := s.main.present(); t != nil && s.statsFor != now {
		s.stats, s.statsFor = t.stats(now), now
	}
	return s.stats
}

func newStates(seed uint64) *states {
	h := valuehash.New(seed)
	return &states{hasher: h, seed: h.Hash(rule.String(""))}
}

// resourceState is what all versions of a limiter have in common.
type resourceState struct {
	*states
	salt uint64 // tells the values of this limiter from those of others
	own  slots  // of the values that the rule names, and of calls without a value

	// busyUntil is an instant by which the states of all values are as new. It moves on
	// by large steps, so that most calls only read it.
	busyUntil atomic.Int64

	prepaid *prepaidState // nil unless the rule has a balance of each value

	settles atomic.Bool // the program settles calls
	warned  warnonce.Windows

	// moved says that a change of the rule has given values a state of their own, or taken
	// it, while calls of them may have been under way.
	moved atomic.Bool

	bindMu sync.Mutex
	// bindMu guards the rest.
	version uint64         // the latest that a call has come to, or that was activated
	ownKeys map[uint64]int // of the values with a state of their own, to their classes
}

func (s *states) newResource() *resourceState {
	return &resourceState{states: s, salt: splitmix.Mix(s.seed + s.salts.Add(1)*prime2)}
}

// keep notes that a value may have state until so long after now.
func (s *resourceState) keep(now clock.Instant, keeps time.Duration) {
	for !s.isKept(now, keeps) {
		step := max(keeps/8, time.Second)
		if until := s.busyUntil.Load(); s.busyUntil.CompareAndSwap(until, max(until, int64(addTo(now, keeps+step)))) {
			return
		}
	}
}

// isKept says that keep has nothing to do, as for most calls.
func (s *resourceState) isKept(now clock.Instant, keeps time.Duration) bool {
	return int64(addTo(now, keeps)) <= s.busyUntil.Load()
}

// penaltiesFor returns the penalties of the rule's values.
func (s *states) penaltiesFor(c *compiled) *penalties {
	r := &c.rule
	if r.Penalty == (Penalty{}) {
		return nil
	}
	if present := s.penalties.Load(); present != nil {
		return present
	}
	s.penalties.CompareAndSwap(nil, newPenalties(r.penaltySize(), r.Penalty, c.version))
	return s.penalties.Load()
}

// slots is a table of the states of values. It is made when the first call needs it.
type slots struct {
	mu sync.Mutex
	// The mutex guards the rest.
	version uint64 // of the rule, the latest that the table is made for
	tables  *tables
	size    int
	awaited awaited
}

// awaited is the latest version of the rule that was activated while there was no table, and how to
// make one for it.
type awaited struct {
	version uint64
	make    func(size int) *tables
}

// The table of the values with a state of their own has one of two sizes: it becomes larger
// once at the most, so that no change of its size comes while another is under way. There
// are ownSpace times more slots than values: so each of them finds one.
const (
	ownSpace = 4
	fewOwn   = 64
)

// ownSize is the size of the table of the values that the rule names, and of calls without
// a value.
func (c *compiled) ownSize() int {
	if len(c.exact) < fewOwn {
		return ownSpace * fewOwn
	}
	return ownSpace * (maxEntries + 1)
}

// tables is the table for an algorithm. The others are nil.
type tables struct {
	buckets     *table.Buckets
	windows     *table.Windows
	concurrency *table.Concurrency
	number      uint64 // differs from that of tables of another size
}

// tablesFor returns the table for a version of the rule, with space for at least and at most so
// many values. It keeps its size if it can.
func (s *slots) tablesFor(c *compiled, least, most int, now clock.Instant) *tables {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := min(max(s.size, least), most)
	switch {
	case s.tables == nil && s.awaited.version > c.version:
		s.tables, s.version = s.awaited.make(s.size), s.awaited.version
		return s.tables
	case s.tables == nil:
		s.tables = newTables(c, size)
	case c.version > s.version:
		s.tables = s.tables.adopt(size, now)
	default:
		return s.tables // calls of an earlier version are stale there
	}
	s.version, s.size = c.version, size
	return s.tables
}

// await says whether there is no table yet. It will be made for this version at least, of that size,
// so that calls of an earlier one are stale there.
func (s *slots) await(c *compiled, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tables != nil {
		return false
	}
	if s.awaited.version < c.version {
		s.size = size
		s.awaited = awaited{c.version, func(size int) *tables { return newTables(c, size) }}
	}
	return true
}

// present returns the table, nil if there is none yet.
func (s *slots) present() *tables {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tables
}

func newTables(c *compiled, size int) *tables {
	switch {
	case c.rates != nil:
		return &tables{buckets: table.NewBuckets(size, c.rates)}
	case c.terms != nil:
		return &tables{windows: table.NewWindows(size, c.terms)}
	}
	return &tables{concurrency: table.NewConcurrency(size, c.version)}
}

// adopt returns the table for a newer version of the rule.
func (t *tables) adopt(size int, now clock.Instant) *tables {
	next := *t
	switch {
	case t.buckets != nil:
		next.buckets = t.buckets.Adopt(size, now)
	case t.windows != nil:
		next.windows = t.windows.Adopt(size, now)
	default:
		next.concurrency = t.concurrency.Adopt(size, now)
	}
	if next == *t {
		return t
	}
	next.number++
	return &next
}

// activate goes over to a version of the rule.
func (t *tables) activate(c *compiled, now clock.Instant) {
	switch {
	case t.buckets != nil:
		t.buckets.Activate(c.rates, now)
	case t.windows != nil:
		t.windows.Activate(c.terms, now)
	default:
		t.concurrency.Activate(c.version)
	}
}

func (t *tables) stats(now clock.Instant) table.Stats {
	switch {
	case t.buckets != nil:
		return t.buckets.Stats(now)
	case t.windows != nil:
		return t.windows.Stats(now)
	}
	return t.concurrency.Stats()
}

// Odd numbers without a pattern.
const (
	prime1 = 0xD6E8FEB86659FD93
	prime2 = 0xA0761D6478BD642F
)
