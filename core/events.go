package core

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// EventType says what happened.
type EventType string

// The types of events. The comments name the fields that an event of the type may have, beside ID, At
// and Skipped.
const (
	EventSwap      EventType = "swap"      // another set of rules is in force: Source, Revision, Rules, Added, Changed, Removed
	EventRejection EventType = "rejection" // a document was not applied, or not all of it: Source, Document, Revision, Err
	EventState     EventType = "state"     // a limiter changed its state: Resource or its pattern, Kind, Rule, From, To, Forced, By, and in Text why
	EventForced    EventType = "forced"    // an operator forced the state of a rule, or of all rules of a kind: Kind, Rule, From, To, By, Until, Ended, and in Text why
	EventSwitch    EventType = "switch"    // an operator switched rules off or on, see Engine.Switch: also Resource; all rules without any of the three
	EventSource    EventType = "source"    // a source was found or lost: Source, Revision, To, which is SourceConnected or the like, Err
	EventRefusal   EventType = "refusal"   // a sample of the calls that were refused: Resource, Kind, Rule, RetryAfter
	EventFleet     EventType = "fleet"     // the backend of the fleet: Text, Err
	EventList      EventType = "list"      // a list came, changed or failed: Source, Document, Resource, which is its name, To, Err
	EventSignal    EventType = "signal"    // a signal of the system: Source, which is its name, To, which is known or unknown, Err
	EventOverflow  EventType = "overflow"  // a name found no space among MaxResources, the first to do so: Resource
	EventRecharge  EventType = "recharge"  // tokens were added to a balance, see Engine.Recharge: Resource, Kind, Rule, By, Text
	EventWarning   EventType = "warning"   // of a rule, or of its kind: Resource, Kind, Rule, Text or Err
)

// How a source is, in [Event.To].
const (
	SourceConnected = "connected"
	SourceLost      = "lost"
	SourceOnCopy    = "on a copy" // it cannot be read, its last good copy is in force
	SourceEnded     = "ended"     // it gave up
)

// Event is something that happened in an engine and that is rare: what an operator wants to see beside
// the traffic. Texts are cut after 256 bytes, errors after a KiB.
type Event struct {
	// ID grows with each event, by one. The first one of an engine is about the time at which that was
	// made, in microseconds, so that IDs grow over restarts of the process, too.
	ID   uint64
	At   clock.Instant
	Type EventType

	Source, Document string
	Revision         int64

	Resource string
	Kind     rule.Kind
	Rule     string // "" in an event of all rules of the kind

	// From and To are states. Forced is the state that an operator has forced on the rule while its
	// limiter changed, "" if the limiter changed by itself.
	From, To, Forced string

	By    string    // who forced it
	Until time.Time // by the wall clock, when the forced state ends by itself; the zero time if it does not
	Ended bool      // the time of the forced state is over

	Text string // what happened, where the type does not say it
	Err  string // why

	Rules, Added, Changed, Removed int

	RetryAfter time.Duration // 0 if it is unknown, [Never] if the call cannot pass

	// Skipped counts the events of the type that came before it and were not kept, since there were too
	// many in their second.
	Skipped uint64
}

const (
	// eventsInSecond is how many events of one type are kept of each second.
	eventsInSecond = 50

	eventErrorBytes = 1 << 10
)

// eventLog keeps the latest events.
type eventLog struct {
	mu      sync.Mutex // guards what follows; the last one in the order of locks
	most    int
	ring    []Event // once it is full, the oldest is that at next%most
	next    uint64  // how many were added
	firstID uint64
	budgets map[EventType]*eventBudget
	changed chan struct{} // closed when an event is added; nil while nobody waits
	lists   map[listKey]listState
}

// eventBudget bounds the events of a type.
type eventBudget struct {
	second  int64
	kept    int // in the second
	skipped uint64
}

func (l *eventLog) init(most int, now clock.Instant) {
	l.most, l.budgets = most, make(map[EventType]*eventBudget)
	l.firstID = uint64(max(time.Microsecond, now.Sub(0)) / time.Microsecond)
}

// add adds an event, unless there were too many of its type.
func (l *eventLog) add(e Event) {
	if l.most <= 0 {
		return
	}
	for _, text := range []*string{&e.Source, &e.Document, &e.Resource, &e.Rule, &e.By, &e.Text} {
		*text = loggable(*text)
	}
	e.Err = cutError(e.Err)
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.budgets[e.Type]
	if b == nil {
		b = new(eventBudget)
		l.budgets[e.Type] = b
	}
	if second := secondOf(e.At); second > b.second || second < b.second-1 { // the clock went back
		b.second, b.kept = second, 0
	}
	if b.kept == eventsInSecond {
		b.skipped++
		return
	}
	b.kept++
	e.Skipped, b.skipped = b.skipped, 0
	e.ID = l.firstID + l.next
	if len(l.ring) < l.most {
		l.ring = append(l.ring, e)
	} else {
		l.ring[l.next%uint64(l.most)] = e
	}
	l.next++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func cutError(text string) string {
	if len(text) <= eventErrorBytes {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:eventErrorBytes], "") + "…"
}

// Events returns the events that came after the one of an ID, oldest first: all that are kept for 0. The
// latest [Config.MaxEvents] are kept, and of one type no more than 50 a second. missed says that events
// that came after that ID are gone; they may be those of an earlier process.
func (e *Engine) Events(after uint64) (events []Event, missed bool) {
	e.noteLists()
	l := &e.events
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.firstID + l.next - uint64(len(l.ring))
	if after >= l.firstID+l.next { // that of an engine whose clock was ahead
		after, missed = 0, true
	}
	from := max(first, after+1)
	for id := from; id < l.firstID+l.next; id++ {
		events = append(events, l.ring[(id-l.firstID)%uint64(l.most)])
	}
	return slices.Clip(events), missed || after != 0 && after+1 < first
}

// EventsChanged returns a channel that is closed when an event is added after the call. It is never
// closed if [Config.MaxEvents] is negative.
func (e *Engine) EventsChanged() <-chan struct{} {
	l := &e.events
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// LastEvent returns the ID of the latest event, or the one before the first.
func (e *Engine) LastEvent() uint64 {
	l := &e.events
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.firstID + l.next - 1
}
