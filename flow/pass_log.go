package flow

import (
	"slices"
	"sort"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// passLog remembers what has passed a limiter whose rule has changed its shape:
// the length or the parts of its window, or how it counts at all. A shorter window
// forgets what a longer one would still count; the log keeps that for the way back.
//
// A token is remembered as passed when the bucket ended that counted it, or later,
// never earlier: what is counted again under another shape counts for longer than
// it would have to, and never for less. Tokens that lie close together, measured by
// their age, are remembered as one entry at the latest of their times. That bounds
// the log to a few hundred entries, and leaves windows of up to 16 parts as they were.
//
// The mutex of the limiter guards it.
type passLog struct {
	entries []logEntry    // in the order of their times
	reach   time.Duration // how far back it remembers: as far as any shape of the rule so far looks
	most    int           // entries, before it is thinned out; 0 for minLog
	since   clock.Instant // all that passed from then on is in it
}

// logEntry is some tokens that passed no later than at that instant.
type logEntry struct {
	at     clock.Instant
	tokens int64
}

const (
	// minLog is how many entries are not worth thinning out.
	minLog = 64
	// logParts is how many entries there are at least for a stretch of time as
	// long as it is ago.
	logParts = 16
	// maxReach is the longest that a log remembers: the span of the longest window
	// that a rule can have.
	maxReach = 2 * MaxWindow
)

// reach returns how far back the rule looks: what passed before does not matter to
// what may pass now.
func (t *Terms) reach() time.Duration {
	if t.rule.Limit == 0 {
		return t.spanLength() // nothing passes, whatever has
	}
	perToken := min(t.cost(1, t.rule.Limit), float64(maxReach))
	reach := t.spanLength()
	switch t.rule.Limiter() {
	case WindowLimiter:
		if t.rule.Limit < 1 {
			reach = max(reach, time.Duration(perToken))
		}
	case ThrottleLimiter:
		reach = time.Duration(perToken)
	case BucketLimiter:
		full := min(t.rule.Burst/t.perNanosecond(), float64(maxReach))
		reach = max(time.Duration(perToken), time.Duration(full), t.rule.WarmUp.Period)
	}
	return min(reach, maxReach)
}

// clone returns a log of its own that remembers the same. A nil log has a nil clone.
func (l *passLog) clone() *passLog {
	if l == nil {
		return nil
	}
	c := *l
	c.entries = slices.Clone(l.entries)
	return &c
}

// add remembers n tokens that passed at an instant, no earlier than those before.
func (l *passLog) add(at clock.Instant, n int64) {
	if last := len(l.entries) - 1; last >= 0 {
		entry := &l.entries[last]
		at = max(at, entry.at)
		if int64(at)/int64(MinBucket) == int64(entry.at)/int64(MinBucket) {
			entry.at, entry.tokens = at, entry.tokens+n
			return
		}
	}
	l.entries = append(l.entries, logEntry{at, n})
}

// giveBack takes back up to n tokens that passed at an instant. It returns how many
// were remembered, and at which instant.
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

// trim forgets what does not count at now under any shape that the rule has had,
// and thins out the rest if it has become too much.
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
		l.thinOut()
		l.most = 2 * len(l.entries)
	}
}

// isEmpty says whether nothing that is remembered could count at now. A nil log
// remembers nothing.
func (l *passLog) isEmpty(now clock.Instant) bool {
	if l == nil {
		return true
	}
	l.trim(now)
	_, ok := l.last()
	return !ok
}

// thinOut puts entries together that lie closer to each other than a part of their
// age.
func (l *passLog) thinOut() {
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

// last returns when the last tokens passed, false if none are remembered.
func (l *passLog) last() (at clock.Instant, ok bool) {
	for _, entry := range slices.Backward(l.entries) {
		if entry.tokens > 0 {
			return entry.at, true
		}
	}
	return 0, false
}

// balance returns how many tokens a bucket would hold at now if all that is
// remembered had been taken from it: full before the first, never less than empty.
func (l *passLog) balance(burst, perNanosecond float64, now clock.Instant) float64 {
	tokens, at := burst, now
	for _, entry := range l.entries {
		tokens = min(burst, tokens+float64(max(0, entry.at.Sub(at)))*perNanosecond)
		tokens, at = max(0, tokens-float64(entry.tokens)), entry.at
	}
	return min(burst, tokens+float64(max(0, now.Sub(at)))*perNanosecond)
}
