package hotparam

import (
	"encoding/binary"
	"math"
	"net/netip"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam/internal/table"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var (
	_ optional.SourceReader = (*limiter)(nil)
	_ optional.SourceReader = (*prepaidLimiter)(nil)
	_ optional.SourceReader = (*throttle)(nil)
)

// The part of an address that says from which source a call comes: what one owner mostly has.
const (
	sourceBits4 = 16
	sourceBits6 = 32
)

// growPause is how long after a table could not grow it is not tried again.
const growPause = time.Second

// acquireSlowly decides on a call that the table has not decided on.
func (l *limiter) acquireSlowly(s subject, c rule.Call, outcome table.Outcome) (rule.Ticket, rule.Decision) {
	t, place, wait, outcome := l.takeAgain(s, c, table.UnknownSource, outcome)
	return l.decide(s, c, t, place, wait, outcome)
}

// AcquireFrom decides on a call of which is known where it comes from.
func (l *limiter) AcquireFrom(c rule.Call, source rule.Attribute) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return undecided(decision)
	}
	t, place, wait, outcome := l.takeFrom(s, c, source)
	return l.decide(s, c, t, place, wait, outcome)
}

// AcquireFrom decides on a call of which is known where it comes from. One whose value has no
// slot does not wait: who invents values could have as many calls wait as he likes.
func (l *throttle) AcquireFrom(c rule.Call, source rule.Attribute) (rule.Ticket, rule.Decision) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return undecided(decision)
	}
	t, place, wait, outcome := l.takeFrom(s, c, source)
	if outcome == table.Refused && (!place.IsShared() || !source.IsSet()) {
		return l.waitOrRefuse(s, c, place, wait)
	}
	return l.decide(s, c, t, place, wait, outcome)
}

// decide returns the decision that an outcome stands for.
func (l *limiter) decide(
	s subject, c rule.Call, t *tables, place table.Place, wait time.Duration, outcome table.Outcome,
) (rule.Ticket, rule.Decision) {
	switch outcome {
	case table.Taken:
		return l.pass(t, place, s, c.Now, c.Attribute), rule.Pass
	case table.Stale:
		return 0, rule.Stale
	case table.NoSlot:
		return 0, optional.NeedsSource
	}
	return l.refuse(s, c, wait, place.IsShared())
}

// takeFrom is take for a call of which is known where it comes from.
func (l *limiter) takeFrom(
	s subject, c rule.Call, source rule.Attribute,
) (t *tables, place table.Place, wait time.Duration, outcome table.Outcome) {
	from := l.sourceOf(source)
	if t, place, wait, outcome = l.take(s, c, from); outcome == table.Taken || outcome == table.Refused {
		l.noteIfShared(place)
		return t, place, wait, outcome
	}
	return l.takeAgain(s, c, from, outcome)
}

// takeAgain takes anew what a call takes that the table has not decided on, if the table has grown
// meanwhile or can grow now. It returns NoSlot only if the engine can tell where the call comes from.
func (l *limiter) takeAgain(
	s subject, c rule.Call, from table.Source, first table.Outcome,
) (t *tables, place table.Place, wait time.Duration, outcome table.Outcome) {
	for outcome = first; ; {
		switch {
		case outcome == table.Stale && l.hasGrown():
		case outcome == table.NoSlot && !s.isOwn && l.grow(c.Now):
		case outcome == table.NoSlot && (s.isOwn || !l.sources):
			from = table.NoSource
		default:
			l.noteIfShared(place)
			return t, place, wait, outcome
		}
		t, place, wait, outcome = l.take(s, c, from)
	}
}

// unknownSource is the source of a call of which it is not known yet, if the engine can tell it.
func (l *limiter) unknownSource() table.Source {
	if l.sources {
		return table.UnknownSource
	}
	return table.NoSource
}

// sourceOf returns the source of a call: the network of an address, or the hash of any other
// text, such as the name of the caller.
func (l *limiter) sourceOf(source rule.Attribute) table.Source {
	if !source.IsSet() {
		return table.NoSource
	}
	text, _ := source.Text()
	address, _, _ := strings.Cut(text, "/") // of the prefix that identifies a client
	if !strings.ContainsAny(address, ".:") || strings.Trim(address, "0123456789abcdefABCDEF.:") != "" {
		return table.SourceOf(l.hasher.Hash(source) ^ l.state.salt)
	}
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return table.SourceOf(l.hasher.Hash(source) ^ l.state.salt)
	}
	parsed = parsed.Unmap()
	bits := sourceBits6
	if parsed.Is4() {
		bits = sourceBits4
	}
	network, _ := parsed.Prefix(bits)
	bytes := network.Addr().As16() // of an IPv4 address, the last ones
	number := uint64(binary.BigEndian.Uint32(bytes[:]))<<32 | uint64(binary.BigEndian.Uint32(bytes[10:]))
	return table.SourceOf(l.hasher.Hash(rule.Int(int64(number))) ^ l.state.salt)
}

// hasGrown says whether a larger table has taken over from the one that this limiter uses, which
// it does from then on.
func (l *limiter) hasGrown() bool {
	next := l.state.main.of(l.version)
	if next == nil || next == l.main.Load() {
		return false
	}
	l.main.Store(next)
	return true
}

// grow has a larger table take over, up to that of [Rule.MaxValues], and says whether one has.
func (l *limiter) grow(now clock.Instant) bool {
	if now < clock.Instant(l.growAfter.Load()) {
		return false
	}
	next := l.state.main.grow(l.compiled, l.main.Load(), now)
	if next != l.main.Load() {
		l.main.Store(next)
		return true
	}
	l.growAfter.Store(int64(addTo(now, growPause)))
	return false
}

// toldAfter is how many calls without a slot are told: some happen by chance before a table is full.
const toldAfter = 100

// noteIfShared notes that a value has found no slot, if that is so.
func (l *limiter) noteIfShared(place table.Place) {
	if place.IsShared() {
		l.noteFull()
	}
}

// noteFull tells, once for a rule, that values find no slot.
func (l *limiter) noteFull() {
	if l.state.withoutSlot.Load() >= toldAfter || l.state.withoutSlot.Add(1) != toldAfter || l.warn == nil {
		return
	}
	l.warn("more values are in use than the rule keeps: those without a place share counters, which may refuse too much; " +
		"raise maxValues, unless somebody invents values")
}

// grow returns a larger table in place of one for a version of the rule; the same one if it
// cannot grow.
func (s *slots) grow(c *compiled, present *tables, now clock.Instant) *tables {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.version != c.version:
		return present // it is to be that of another version
	case s.tables != present:
		return s.tables // another call was quicker
	}
	if next := present.grow(c.rule.MaxValues, now); next != present {
		s.tables, s.size = next, c.rule.MaxValues
	}
	return s.tables
}

// of returns the table, if that is for a version of the rule.
func (s *slots) of(version uint64) *tables {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != version {
		return nil
	}
	return s.tables
}

// grow returns a larger table that has taken over; the same one if it cannot.
func (t *tables) grow(size int, now clock.Instant) *tables {
	next := *t
	switch {
	case t.buckets != nil:
		next.buckets = t.buckets.Grow(size, now)
	case t.windows != nil:
		next.windows = t.windows.Grow(size, now)
	}
	if next == *t {
		return t
	}
	next.number++
	return &next
}

// Most rules see few values. So a table has at first as many places as suffice for these, and
// goes over to the number of MaxValues when the first value finds few. What MaxValues defaults
// to is for a flood: so many new values a second for as long as one of them takes to be as new
// again, in no more than so many bytes.
const (
	floodPerSecond = 500
	floodBytes     = 64 << 20
	bucketBytes    = 15 // of a value, with its part of what a table has beside
	windowBytes    = 90
)

// defaultMaxValues returns what MaxValues defaults to, of a rule whose other fields are complete.
func (r *Rule) defaultMaxValues() int {
	if isOfFleet(r) || r.Concurrency != 0 || !(r.Limit > 0) {
		return usualMaxValues
	}
	most := floodBytes / bucketBytes
	if r.countsWhole() {
		most = floodBytes / windowBytes
	}
	wanted := math.Ceil(floodPerSecond * r.fullAfter(r.Limit).Seconds())
	return int(max(usualMaxValues, min(wanted, float64(most))))
}

// hasDefaultSize says that MaxValues is what it defaults to.
func (r *Rule) hasDefaultSize() bool { return r.MaxValues == r.defaultMaxValues() }

// firstSize is how many values the table is for at first.
func (r *Rule) firstSize() int { return min(r.MaxValues, usualMaxValues) }

// penaltySize is for how many values there is space for penalties, which take much more of it.
func (r *Rule) penaltySize() int {
	if r.hasDefaultSize() {
		return usualMaxValues
	}
	return r.MaxValues
}
