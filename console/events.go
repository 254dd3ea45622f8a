package console

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
)

// eventLog has the latest events of all instances. Its methods must not be called concurrently.
type eventLog struct {
	gather gatherer[inspect.Events]
	since  map[string]uint64
	there  map[string]bool // the instances of the last reading, nil before the first
	latest []loggedEvent   // the newest first
}

// eventInstance is the type of events that the console notes by itself: an instance has begun to report, or its
// report is gone.
const eventInstance core.EventType = "instance"

// loggedEvent is an event, and where it happened.
type loggedEvent struct {
	Instance string `json:"instance"`
	inspect.Event
}

func newEventLog() *eventLog { return &eventLog{since: make(map[string]uint64)} }

// isNoRefusal leaves samples of refusals out: there are so many that others would not be seen.
func isNoRefusal(e *inspect.Event) bool { return e.Type != "refusal" }

// read returns the latest events that are wanted.
func (l *eventLog) read(ctx context.Context, all []instance, wanted func(*inspect.Event) bool) []loggedEvent {
	since := maps.Clone(l.since) // which a question of the last reading may still read
	answers := l.gather.ask(ctx, all, func(ctx context.Context, i instance) (events inspect.Events, err error) {
		return events, i.ask(ctx, "events", url.Values{"since": {strconv.FormatUint(since[i.name], 10)}}, &events)
	})
	now := time.Now()
	for _, a := range answers {
		last := since[a.instance.name]
		if a.err == "" && a.value.Last < last { // another process, or one whose clock was set back
			last = 0
		}
		for _, e := range a.value.Events {
			if e.ID > last && wanted(&e) {
				if e.At.After(now) { // its clock is ahead: it would be above all others for as long
					e.At = now
				}
				l.latest = append(l.latest, loggedEvent{a.instance.name, e})
			}
		}
		l.since[a.instance.name] = max(last, a.value.Last)
	}
	l.compare(all, now, wanted)
	slices.SortStableFunc(l.latest, func(a, b loggedEvent) int { return b.At.Compare(a.At) })
	l.latest = l.latest[:min(len(l.latest), overviewEvents)]
	return append([]loggedEvent{}, l.latest...)
}

// compare notes which instances have come and gone since the last reading. One that hangs or crashed is among them
// only until its report ends, and its calls are missing afterwards, too.
func (l *eventLog) compare(all []instance, now time.Time, wanted func(*inspect.Event) bool) {
	note := func(name, to string) {
		if e := (inspect.Event{ID: uint64(now.UnixMicro()), At: now, Type: eventInstance, To: to}); wanted(&e) {
			l.latest = append(l.latest, loggedEvent{name, e})
		}
	}
	there := make(map[string]bool, len(all))
	for _, i := range all {
		if i.base == "" {
			continue // it stands for those that are not shown
		}
		if there[i.name] = true; l.there != nil && !l.there[i.name] {
			note(i.name, "there")
		}
	}
	for name := range l.there {
		if !there[name] {
			note(name, "gone")
		}
	}
	l.there = there
}
