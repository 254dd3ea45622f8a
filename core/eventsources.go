package core

import "cmp"

func (e *Engine) noteSwap(s *Swap, source string) {
	e.events.add(Event{
		At: s.At, Type: eventSwap, Source: source, Revision: int64(s.Revision),
		Rules: s.Rules, Added: s.Added, Changed: s.Changed, Removed: s.Removed,
	})
}

func (e *Engine) noteRejection(r *Rejection) {
	e.events.add(Event{
		At: e.clock.Now(), Type: eventRejection, Source: r.Source, Document: r.Document, Revision: r.Revision, Err: textOf(r.Err),
	})
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Events returns the events that came after the one of an ID, oldest first: all that are kept for 0. The
// latest [Config.MaxEvents] are kept, and of one type no more than 50 a second. missed says that events
// that came after that ID are gone; they may be those of an earlier process.
func (e *Engine) Events(after uint64) (events []Event, missed bool) {
	e.noteLists()
	return e.events.After(after)
}

// LastEvent returns the ID of the latest event, or the one before the first, and a channel that is closed
// when the next one is added. It is never closed if [Config.MaxEvents] is negative.
func (e *Engine) LastEvent() (id uint64, next <-chan struct{}) {
	next = e.events.Changed() // first, so that no event comes unseen between the two
	return e.events.Last(), next
}

// noteLists notes which lists have changed since it was last called. Lists may belong to several
// engines, so that nobody tells.
func (e *Engine) noteLists() {
	if !e.events.Keeps() {
		return
	}
	status, now := e.lists.Status(), e.clock.Now()
	next := make(map[listKey]listState, len(status))
	for i := range status {
		next[listKey{status[i].Name, status[i].Provider}] = stateOfList(&status[i])
	}
	before := e.listStates.swap(next)
	for i := range status {
		s := &status[i]
		key := listKey{s.Name, s.Provider}
		state := next[key]
		if before[key] == state {
			continue
		}
		at := cmp.Or(s.Since, now)
		if was, known := before[key]; known && was.since == s.Since {
			at = cmp.Or(s.FailedAt, now)
		}
		e.events.add(Event{
			At: at, Type: eventList, Source: s.Source, Document: s.Document, Resource: s.Name, To: state.how, Err: state.err,
		})
	}
	for key := range before {
		if _, there := next[key]; !there {
			e.events.add(Event{At: now, Type: eventList, Source: key.Source, Document: key.Document, Resource: key.name, To: "gone"})
		}
	}
}
