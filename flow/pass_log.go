package flow

import (
	"slices"
	"sort"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/calendar"
)

// passLog is a log of what has passed a limiter whose rule has changed its shape: the
// length or the number of buckets of its window, or its algorithm. A shorter window drops
// what a longer one would still count. The log keeps it, in case the rule is changed back.
//
// A token is logged as of the end of the bucket that counted it, or later, never earlier.
// So when it is counted again under another shape, it counts for longer than it has to,
// never for less. Tokens whose times are close together in proportion to their age are
// one entry, as of the latest of them. That bounds the log to a few hundred entries, and
// restores windows of up to 16 buckets as they were.
//
// The mutex of the limiter guards it.
type passLog struct {
	entries []logEntry    // by time
	reach   time.Duration // how far it goes back: as far as any shape of the rule so far needs
	most    int           // entries, before it is compacted; 0 for minLog
	since   clock.Instant // everything that passed from then on is in it

	// Of a window:
	restored     int64 // the bucket that was open when it was last filled from the log
	restoredOpen int64 // tokens of that bucket that are in the log
}

// logEntry is some tokens that passed no later than at that instant.
type logEntry struct {
	at     clock.Instant
	tokens int64
}

const (
	// minLog is how many entries are not worth compacting.
	minLog = 64
	// logParts is the ratio of the age of an entry to the longest time that it stands
	// for.
	logParts = 16
	// maxReach is the furthest that a log goes back: the span of the longest window that
	// a rule can have.
	maxReach = 2 * calendar.MaxLength
)

// reach returns how far back the rule counts: what passed before does not matter to what
// may pass now.
func (r *compiledRule) reach() time.Duration {
	if r.rule.Limit == 0 {
		return r.spanLength() // nothing passes, whatever has
	}
	least := r.rule.Limit
	if r.follower != nil {
		least = r.rule.Follow.Least
	}
	perToken := min(r.cost(1, least), float64(maxReach))
	reach := r.spanLength()
	switch r.rule.limiterKind() {
	case windowLimiter:
		if least < 1 {
			reach = max(reach, time.Duration(perToken))
		}
	case throttleLimiter:
		reach = time.Duration(perToken)
	case bucketLimiter:
		full := min(r.rule.Burst/r.perNanosecond(), float64(maxReach))
		reach = max(time.Duration(perToken), time.Duration(full), r.rule.WarmUp.Period)
	}
	return min(reach, maxReach)
}

// clone returns a copy. A nil log has a nil clone.
func (l *passLog) clone() *passLog {
	if l == nil {
		return nil
	}
	c := *l
	c.entries = slices.Clone(l.entries)
	return &c
}

// add logs n tokens that passed at an instant, or that of the last entry if it is later.
func (l *passLog) add(at clock.Instant, n int64) {
	if last := len(l.entries) - 1; last >= 0 {
		entry := &l.entries[last]
		at = max(at, entry.at)
		if int64(at)/int64(minBucket) == int64(entry.at)/int64(minBucket) {
			entry.at, entry.tokens = at, entry.tokens+n
			return
		}
	}
	l.entries = append(l.entries, logEntry{at, n})
}

// giveBack takes back up to n tokens that passed at an instant. It returns how many of
// them were in the log, and as of which instant.
func (l *passLog) giveBack(passed clock.Instant, n int64) (at clock.Instant, returned int64) {
	i := sort.Search(len(l.entries), func(i int) bool { return l.entries[i].at >= passed })
	if i == len(l.entries) || passed < l.since {
		return 0, 0
	}
	entry := &l.entries[i]
	returned = min(n, entry.tokens)
	entry.tokens -= returned
	return entry.at, returned
}

// trim drops what does not count at now under any shape that the rule has had, and
// compacts the rest if it has become too much.
func (l *passLog) trim(now clock.Instant) {
	l.since = max(l.since, now.Add(-l.reach)+1)
	first := 0
	for first < len(l.entries) && l.entries[first].at < l.since {
		first++
	}
	if first > 0 {
		l.entries = append(l.entries[:0], l.entries[first:]...)
	}
	if len(l.entries) > max(l.most, minLog) {
		l.compact()
		l.most = 2 * len(l.entries)
	}
}

// isEmpty says whether nothing in the log could count at now. A nil log is empty.
func (l *passLog) isEmpty(now clock.Instant) bool {
	if l == nil {
		return true
	}
	l.trim(now)
	_, ok := l.last()
	return !ok
}

// compact joins entries whose distance is small in proportion to their age.
func (l *passLog) compact() {
	newest := l.entries[len(l.entries)-1].at
	kept, first := l.entries[:1], l.entries[0].at
	for _, entry := range l.entries[1:] {
		if entry.at.Sub(first) <= newest.Sub(entry.at)/logParts {
			last := &kept[len(kept)-1]
			last.at, last.tokens = entry.at, last.tokens+entry.tokens
			continue
		}
		first = entry.at
		kept = append(kept, entry)
	}
	l.entries = append(make([]logEntry, 0, 2*len(kept)), kept...)
}

// last returns when the last tokens passed, false if there are none.
func (l *passLog) last() (at clock.Instant, ok bool) {
	for _, entry := range slices.Backward(l.entries) {
		if entry.tokens > 0 {
			return entry.at, true
		}
	}
	return 0, false
}

// balance returns how many tokens a bucket would hold at now if everything in the log had
// been taken from it: full before the first, never less than empty.
func (l *passLog) balance(burst, perNanosecond float64, now clock.Instant) float64 {
	tokens, at := burst, now
	for _, entry := range l.entries {
		tokens = min(burst, tokens+float64(max(0, entry.at.Sub(at)))*perNanosecond)
		tokens, at = max(0, tokens-float64(entry.tokens)), entry.at
	}
	return min(burst, tokens+float64(max(0, now.Sub(at)))*perNanosecond)
}

// predecessor is a limiter, a window or a queue, that another one takes over from
// because its rule has changed the algorithm.
type predecessor interface {
	// handOver ends the limiter and returns the log of what it has let pass, as far as
	// that is known. Calls that still come get Stale.
	handOver(now clock.Instant) *passLog
}
