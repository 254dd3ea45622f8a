package hotparam

import "sync"

// waiters are the calls that wait for a rule, on all of its resources. They wait for instants of their own, in no
// order: the list is there so that they can be released when the rule is gone.
type waiters struct {
	mu sync.Mutex
	// The mutex guards the rest.
	first *waiter
}

// waiter is one of them.
type waiter struct {
	of   uint64 // the salt of the resource that it waits for
	wake func()

	// The mutex of the waiters guards the rest.
	previous, next *waiter
	released       bool // the rule is gone
}

// add adds a call.
func (w *waiters) add(call *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	call.next = w.first
	if w.first != nil {
		w.first.previous = call
	}
	w.first = call
}

// remove removes a call.
func (w *waiters) remove(call *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !call.released {
		w.unlink(call)
	}
}

func (w *waiters) isReleased(call *waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return call.released
}

func (w *waiters) unlink(call *waiter) {
	if call.previous == nil {
		w.first = call.next
	} else {
		call.previous.next = call.next
	}
	if call.next != nil {
		call.next.previous = call.previous
	}
	call.previous, call.next = nil, nil
}

// releaseAll lets go of the calls that wait for the resource with a salt: its rule is gone.
func (w *waiters) releaseAll(of uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for call := w.first; call != nil; {
		next := call.next
		if call.of == of {
			w.unlink(call)
			call.released = true
			call.wake()
		}
		call = next
	}
}
