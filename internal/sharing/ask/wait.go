package ask

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
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
func (w *Wait) Poll(now clock.Instant) (after time.Duration, state exchange.State) {
	w.mu.Lock()
	answered, answer := w.answered, w.answer
	w.mu.Unlock()
	switch {
	case !answered:
		return 0, exchange.Pending
	case answer.Released:
		return 0, exchange.Released
	case !answer.Allowed:
		return 0, exchange.Denied
	case w.from == 0: // the first time that the call sees the answer
		w.from = now.Add(answer.Wait)
	}
	if now < w.from {
		return w.from.Sub(now), exchange.Pending
	}
	return 0, exchange.Allowed
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
