package hotparam

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// bind returns the table for this version, when its first call comes or it is activated. If
// the version names other values than the one before, what these have used moves to or from
// the states that named values have of their own.
func (l *limiter) bind(now clock.Instant) *tables {
	s := l.state
	s.bindMu.Lock()
	defer s.bindMu.Unlock()
	if t := l.main.Load(); t != nil {
		return t
	}
	isFirst := s.main.present() == nil
	main := s.main.tablesFor(l.compiled, l.rule.firstSize(), l.rule.MaxValues, now)
	if l.version > s.version {
		s.version = l.version
		before := s.ownKeys
		s.ownKeys = l.namedKeys()
		if !isFirst {
			l.move(main, before, now)
		}
	}
	l.main.Store(main)
	return main
}

// namedKeys returns the keys of the values that the rule names, and their classes.
func (l *limiter) namedKeys() map[uint64]int {
	if len(l.exact) == 0 {
		return nil
	}
	keys := make(map[uint64]int, len(l.exact))
	for value, entry := range l.values.named {
		keys[l.keyOf(value)] = l.exact[entry]
	}
	return keys
}

// move moves what values have used that are named now and were not before, and the other
// way round. The tables go over to this version first, so that nobody counts in the old
// place any more.
func (l *limiter) move(main *tables, before map[uint64]int, now clock.Instant) {
	s := l.state
	var own *tables
	both := func() *tables {
		if own == nil {
			own = s.own.tablesFor(l.compiled, l.ownSize(), math.MaxInt, now)
			main.activate(l.compiled, now)
			own.activate(l.compiled, now)
			s.moved.Store(true)
		}
		return own
	}
	for key, class := range s.ownKeys {
		if _, was := before[key]; !was {
			l.transfer(main, both(), key, class, now)
		}
	}
	for key := range before {
		if _, is := s.ownKeys[key]; !is {
			l.transfer(both(), main, key, 0, now)
		}
	}
}

// transfer moves what a value has used, in whole tokens, rounded up. Calls under way stay
// where they are: see [limiter.elsewhere].
func (l *limiter) transfer(from, to *tables, key uint64, class int, now clock.Instant) {
	limit := l.limits[class]
	switch {
	case from.concurrency != nil:
	case from.windows != nil:
		used := from.windows.Used(key, l.terms, now)
		to.windows.Charge(key, now, now, toTokens(float64(used)))
		for i := range buckets {
			taken := now.Add(-time.Duration(i) * l.rule.Window / buckets)
			from.windows.Charge(key, now, taken, -math.MaxInt32)
		}
	case limit == 0: // nothing passes any more
	case l.rule.Algorithm == TokenBucket:
		used := l.rule.burst(limit) - from.buckets.Remaining(key, l.rates.Class(class), now)
		to.buckets.Charge(key, class, now, toTokens(used))
		from.buckets.Charge(key, class, now, -math.MaxInt32)
	default:
		// The largest call has to wait until all that was used is as new.
		largest := toTokens(max(1, limit))
		used := from.buckets.RetryAfter(key, l.now[class], now, largest)
		to.buckets.Charge(key, class, now, toTokens(float64(used)*limit/float64(l.rule.Window)))
		from.buckets.Charge(key, class, now, -math.MaxInt32)
	}
}

// toTokens returns a number of tokens, rounded up.
func toTokens(tokens float64) int32 { return int32(min(math.Ceil(max(0, tokens)), math.MaxInt32)) }

// elsewhere returns how many calls of a value are under way that passed when it had its
// state in the other place.
func (l *limiter) elsewhere(s subject, now clock.Instant) int64 {
	if !l.state.moved.Load() {
		return 0
	}
	if s.isOwn {
		return l.mainTables(now).concurrency.InFlight(s.key, now)
	}
	return l.ownTables(now).concurrency.InFlight(s.key, now)
}
