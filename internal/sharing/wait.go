package sharing

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Wait is a call that waits for the answer to what it has asked, see [Asker.Wait]. Its
// methods are called by one goroutine at a time.
type Wait struct {
	asker *Asker
	asked clock.Instant
	n     int32
	wake  func()

	mu       sync.Mutex // guards what follows
	answered bool
	answer   Answer
	left     bool // the call has given up

	from clock.Instant // when the call may pass, once it has seen that it is allowed; not guarded
}

// WaitState says how a [Wait] stands.
type WaitState uint8

// The states of a [Wait].
const (
	WaitPending  WaitState = iota // there is no answer yet, or the call may pass only later
	WaitAllowed                   // the call may pass
	WaitDenied                    // it may not
	WaitReleased                  // the asker was released, see [Answer.Released]
)

// Wait asks for n tokens at now. wake is called once, when Poll can tell the answer; perhaps
// at once, by Wait. It must neither block nor call the Wait.
func (a *Asker) Wait(now clock.Instant, n int32, wake func()) *Wait {
	w := &Wait{asker: a, asked: now, n: n, wake: wake}
	a.Ask(now, n, w.done)
	return w
}

// done takes the answer. What nobody waits for is given back.
func (w *Wait) done(answer Answer) {
	w.mu.Lock()
	w.answered, w.answer = true, answer
	left := w.left
	w.mu.Unlock()
	if !left {
		w.wake()
	} else if answer.Allowed {
		w.asker.GiveBack(w.asked, w.n)
	}
}

// Asked returns when the call has asked: the instant of what it took.
func (w *Wait) Asked() clock.Instant { return w.asked }

// Poll tells how the call stands at now. Pending: it is to be called again when the call is
// woken, and after the duration if that is not 0.
func (w *Wait) Poll(now clock.Instant) (after time.Duration, state WaitState) {
	w.mu.Lock()
	answered, answer := w.answered, w.answer
	w.mu.Unlock()
	switch {
	case !answered:
		return 0, WaitPending
	case answer.Released:
		return 0, WaitReleased
	case !answer.Allowed:
		return 0, WaitDenied
	case w.from == 0: // the first time that the call sees the answer
		w.from = now.Add(answer.Wait)
	}
	if now < w.from {
		return w.from.Sub(now), WaitPending
	}
	return 0, WaitAllowed
}

// Leave says that the call has given up, also after Poll has told that it may pass. What was
// granted to it is given back.
func (w *Wait) Leave() {
	w.mu.Lock()
	w.left = true
	granted := w.answered && w.answer.Allowed
	w.mu.Unlock()
	if granted {
		w.asker.GiveBack(w.asked, w.n)
	}
}

// Timeout returns how long the backend may take for an answer.
func (m *Member) Timeout() time.Duration { return m.config.Timeout }

// Starting says that Run is about to be called: calls that ask before it has begun wait for
// it, rather than being decided on as in an outage.
func (m *Member) Starting(now clock.Instant) {
	if !m.config.Manual {
		m.begin(now)
	}
}
