// Package journal logs which rules came into force, and which documents did not.
package journal

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/core/internal/ruleset"
)

// Interval is how often swaps, and rejections of one document, are logged at the most.
const Interval = time.Second

const (
	// MostNames is how many documents a line names.
	MostNames = 10

	manyRemovals = 100 // rules that are always many, see Cause.isMany
)

// Swap is core.Swap.
type Swap struct {
	Revision                uint64
	At                      clock.Instant
	Rules                   int
	Added, Changed, Removed int
	Took                    time.Duration
}

// Rejection is core.Rejection.
type Rejection struct {
	Source, Document string
	Revision         int64
	Err              error
}

// Journal logs swaps and rejections, once it was initialized, each kind at most once a second. What comes in
// between is counted and logged, as it was last, when that second is over or the
// engine is closed.
type Journal struct {
	log *slog.Logger

	mu         sync.Mutex // guards what follows; not held while something is logged
	swapsAt    clock.Instant
	swaps      int // that are not logged yet
	swap       Swap
	cause      Cause
	many       bool
	rejections map[ruleset.DocumentKey]*rejections
	scheduled  bool // it will be flushed within a second, and again while there is more
}

// rejections are those of one document.
type rejections struct {
	loggedAt clock.Instant
	skipped  int        // that were not logged and are not to be
	pending  *Rejection // to be logged when its time has come
}

// Cause says what brought about a swap.
type Cause struct {
	sources   []string // "code" for rules from code
	documents []string // with their revisions, the first few
	more      int      // documents that are not among these
	rules     int      // that the source, or the code, had before
}

// isMany says whether so many removed rules are worth a warning: half of what there
// was, or a hundred.
func (o Cause) isMany(removed int) bool {
	return removed >= manyRemovals || removed > 0 && 2*removed >= o.rules
}

// CauseOf returns the cause of a change.
func CauseOf(from ruleset.Origin) Cause {
	o := Cause{sources: []string{from.Source}, rules: from.Rules}
	for _, name := range from.Documents {
		o.addName(name)
	}
	return o
}

func (o *Cause) addName(name string) {
	if len(o.documents) < MostNames {
		o.documents = append(o.documents, lines.Cut(name))
	} else {
		o.more++
	}
}

func (o *Cause) add(next Cause) {
	for _, source := range next.sources {
		if !slices.Contains(o.sources, source) {
			o.sources = append(o.sources, source)
		}
	}
	for _, name := range next.documents {
		o.addName(name)
	}
	o.more += next.more
}

// AddSwap takes note of a swap.
func (j *Journal) AddSwap(swap Swap, from Cause) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.many = j.many || from.isMany(swap.Removed)
	swap.Added += j.swap.Added
	swap.Changed += j.swap.Changed
	swap.Removed += j.swap.Removed
	j.swap = swap
	j.cause.add(from)
	j.swaps++
}

// AddRejection takes note that a document was rejected.
func (j *Journal) AddRejection(r Rejection) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := ruleset.DocumentKey{Source: r.Source, Document: r.Document}
	of := j.rejections[key]
	if of == nil {
		of = new(rejections)
		j.rejections[key] = of
	}
	if of.pending != nil {
		of.skipped++
	}
	of.pending = &r
}

// Forget drops what is not logged yet of a document that is in force again.
func (j *Journal) Forget(key ruleset.DocumentKey) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if of := j.rejections[key]; of != nil && of.pending != nil {
		of.pending = nil
		of.skipped++
	}
}

// Init has the journal write to a log.
func (j *Journal) Init(log *slog.Logger) {
	j.log, j.rejections = log, make(map[ruleset.DocumentKey]*rejections)
}

// Flush logs what may be logged at now, or all there is. Each line is logged, whatever becomes of the
// others: a handler of the log may panic, or end the goroutine.
func (j *Journal) Flush(now clock.Instant, all bool) {
	for _, record := range slices.Backward(j.due(now, all)) {
		defer j.write(record)
	}
}

func (j *Journal) write(l line) {
	j.log.LogAttrs(context.Background(), l.level, l.message, l.attrs...)
}

// Schedule returns whether there is something left to log that is not scheduled
// yet. A caller that gets true flushes it a second later, and calls proceed.
func (j *Journal) Schedule() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.scheduled || !j.isPending() {
		return false
	}
	j.scheduled = true
	return true
}

// Proceed returns whether there is more to log, to be flushed a second later.
func (j *Journal) Proceed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.scheduled = j.isPending()
	return j.scheduled
}

// isPending returns whether there is something left to log.
func (j *Journal) isPending() bool {
	if j.swaps > 0 {
		return true
	}
	for _, of := range j.rejections {
		if of.pending != nil {
			return true
		}
	}
	return false
}

// line is one line of the log.
type line struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// due returns what flush has to log.
func (j *Journal) due(now clock.Instant, all bool) (lines []line) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.swaps > 0 && (all || IsDue(j.swapsAt, now)) {
		lines = append(lines, j.swapLine())
		j.swapsAt, j.swaps, j.swap, j.cause, j.many = now, 0, Swap{}, Cause{}, false
	}
	for key, of := range j.rejections {
		switch {
		case !all && !IsDue(of.loggedAt, now):
		case of.pending == nil:
			delete(j.rejections, key)
		default:
			lines = append(lines, of.line())
			*of = rejections{loggedAt: now}
		}
	}
	return lines
}

// IsDue says whether what was logged last at that instant may be logged again. A clock that went back
// does not silence the log; an instant that is a little older was read by another goroutine before.
func IsDue(last, now clock.Instant) bool {
	return last == 0 || now.Sub(last).Abs() >= Interval
}

func (j *Journal) swapLine() line {
	l := line{level: slog.LevelInfo, message: "penstock: rules swapped", attrs: []slog.Attr{
		slog.Uint64("revision", j.swap.Revision),
		slog.String("source", strings.Join(j.cause.sources, ", ")),
		slog.Int("rules", j.swap.Rules),
		slog.Int("added", j.swap.Added),
		slog.Int("changed", j.swap.Changed),
		slog.Int("removed", j.swap.Removed),
		slog.String("took", j.swap.Took.String()),
	}}
	if j.many {
		l.level, l.message = slog.LevelWarn, "penstock: rules swapped, many were removed"
	}
	if len(j.cause.documents) > 0 {
		l.attrs = append(l.attrs, slog.Any("documents", j.cause.documents))
	}
	if j.cause.more > 0 {
		l.attrs = append(l.attrs, slog.Int("moreDocuments", j.cause.more))
	}
	if j.swaps > 1 {
		l.attrs = append(l.attrs, slog.Int("swaps", j.swaps))
	}
	return l
}

func (r *rejections) line() line {
	message := "penstock: rule document rejected, what was in force of it stays"
	switch {
	case r.pending.Source == ruleset.SourceCode:
		message = "penstock: rules from code wait, other owners have their names"
	case r.pending.Document == "":
		message = "penstock: change of a source held back, its rules in force stay"
	}
	l := line{level: slog.LevelError, message: message, attrs: []slog.Attr{
		slog.String("source", r.pending.Source),
		slog.String("document", lines.Cut(r.pending.Document)),
		slog.Int64("revision", r.pending.Revision),
		slog.Any("error", r.pending.Err),
	}}
	if r.skipped > 0 {
		l.attrs = append(l.attrs, slog.Int("skipped", r.skipped))
	}
	return l
}
