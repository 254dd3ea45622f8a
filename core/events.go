package core

import (
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/events"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// EventType says what happened. An event of a type may have these fields, beside ID, At and Skipped:
//
//   - swap: another set of rules is in force. Source, Revision, Rules, Added, Changed, Removed.
//   - rejection: a document was not applied, or not all of it. Source, Document, Revision, Err.
//   - state: a limiter changed its state. Resource or its pattern, Kind, Rule, From, To, Forced, By, and in Text why.
//   - forced: an operator forced the state of a rule, or of all rules of a kind. Kind, Rule, From, To, By, Until, Ended,
//     and in Text why.
//   - switch: an operator switched rules off or on, see [Engine.Switch]. Also Resource; all rules without any of the three.
//   - source: a source was found or lost. Source, Revision, Err, and in To how it is: "connected", "lost", "on a copy",
//     which says that it cannot be read and its last good copy is in force, or "ended", which says that it gave up.
//   - refusal: a sample of the calls that were refused. Resource, Kind, Rule, RetryAfter.
//   - fleet: the backend of the fleet. Text, Err.
//   - list: a list came, changed or failed. Source, Document, Resource, which is its name, To, Err.
//   - signal: a signal of the system. Source, which is its name, To, which is known or unknown, Err.
//   - overflow: a name found no space among MaxResources, the first to do so. Resource.
//   - recharge: tokens were added to a balance, see [Engine.Recharge]. Resource, Kind, Rule, By, Text.
//   - warning: of a rule, or of its kind. Resource, Kind, Rule, Text or Err.
type EventType string

const (
	eventSwap      EventType = "swap"
	eventRejection EventType = "rejection"
	eventState     EventType = "state"
	eventForced    EventType = "forced"
	eventSwitch    EventType = "switch"
	eventSource    EventType = "source"
	eventRefusal   EventType = "refusal"
	eventFleet     EventType = "fleet"
	eventList      EventType = "list"
	eventSignal    EventType = "signal"
	eventOverflow  EventType = "overflow"
	eventRecharge  EventType = "recharge"
	eventWarning   EventType = "warning"
)

// How a source is, in [Event.To].
const (
	sourceConnected = "connected"
	sourceLost      = "lost"
	sourceOnCopy    = "on a copy"
	sourceEnded     = "ended"
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

	RetryAfter time.Duration // 0 if it is unknown, [rule.Never] if the call cannot pass

	// Skipped counts the events of the type that came before it and were not kept, since there were too
	// many in their second.
	Skipped uint64
}

// eventErrorBytes is how much of an error is kept.
const eventErrorBytes = 1 << 10

// eventLog keeps the latest events.
type eventLog struct{ events.Log[Event] }

// add adds an event, unless there were too many of its type.
func (l *eventLog) add(e Event) {
	if !l.Keeps() {
		return
	}
	for _, text := range []*string{&e.Source, &e.Document, &e.Resource, &e.Rule, &e.By, &e.Text} {
		*text = lines.Cut(*text)
	}
	e.Err = cutError(e.Err)
	l.Add(string(e.Type), e.At, e, func(e *Event, id, skipped uint64) { e.ID, e.Skipped = id, skipped })
}

func cutError(text string) string {
	if len(text) <= eventErrorBytes {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:eventErrorBytes], "") + "…"
}

// listKey is a list of a provider.
type listKey struct {
	name string
	list.Provider
}

// listState is what is known of it.
type listState struct {
	since clock.Instant
	how   string // [Event.To]
	err   string
}

// listStates are those that were noted last.
type listStates struct {
	mu    sync.Mutex // guards what follows
	noted map[listKey]listState
}

// swap sets the states, and returns those before.
func (l *listStates) swap(next map[listKey]listState) (before map[listKey]listState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.noted = l.noted, next
	return before
}

// stateOfList returns how a list is, in the words of [Event.To].
func stateOfList(s *list.Status) listState {
	state := listState{since: s.Since, how: "in force"}
	switch {
	case s.HeldBack != nil:
		state.how, state.err = "held back", s.HeldBack.Error()
	case s.Err != nil:
		state.how, state.err = "rejected", s.Err.Error()
	case s.CopiedAt != 0:
		state.how = "on a copy"
	case !s.InForce:
		state.how = "not in force"
	}
	return state
}
