package simulate

import "time"

// eventQueue holds the events to come, arrivals apart, in the order in which
// they are processed.
type eventQueue struct {
	heap[queuedEvent]
	added      uint64 // events so far
	foreground int    // events of calls and seconds, which are not in the background
}

// queuedEvent is an event that is due at a time.
type queuedEvent struct {
	at     time.Duration
	kind   eventKind
	number uint64 // orders events of the same time and kind: first added, first processed
	call   *call  // the call it is about, if it is about one
	trip   *trip  // the same of batches of requests to the backend, and of instances
	index  int    // the same of recharges
}

// eventKind orders the events of one instant.
type eventKind uint8

const (
	signalsSampled eventKind = iota // rules read what signals show
	secondBegins
	workEnds      // of a call: its response is there
	timeoutOver   // of a call under way
	secondSampled // the calls under way at the start of a second are counted
	rechargeMade  // tokens are added to a balance
	backendAsked  // a batch of requests reaches the backend
	replyArrives  // of the backend, or the timeout is over
	placesGranted // an instance is told that it was granted places
	memberSteps   // an instance looks at what it needs of the backend
	waitOver      // of a waiting call, if it was not woken before
	retryArrives  // of a call that was refused or failed
)

func newEventQueue() eventQueue {
	return eventQueue{heap: heap[queuedEvent]{before: func(a, b queuedEvent) bool {
		if a.at != b.at {
			return a.at < b.at
		}
		if a.kind != b.kind {
			return a.kind < b.kind
		}
		return a.number < b.number
	}}}
}

// add queues an event and returns its number, from 1.
func (q *eventQueue) add(e queuedEvent) uint64 {
	q.added++
	e.number = q.added
	q.push(e)
	if !e.kind.background() {
		q.foreground++
	}
	return e.number
}

// take removes the event that is due next.
func (q *eventQueue) take() queuedEvent {
	e := q.pop()
	if !e.kind.background() {
		q.foreground--
	}
	return e
}

// background says whether events of the kind come again and again, and do not matter when
// there is nothing else to come.
func (k eventKind) background() bool {
	return k == signalsSampled || k == backendAsked || k == replyArrives || k == placesGranted || k == memberSteps
}
