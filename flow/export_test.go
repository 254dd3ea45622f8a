package flow

import "fmt"

// CheckLine returns what is wrong with the line of those who wait, of whom
// there should be so many.
func (q *Queue) CheckLine(want int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var count int
	var tokens int64
	var last *Waiter
	for w := q.line.head; w != nil; w = w.next {
		switch {
		case w.prev != last:
			return fmt.Errorf("waiter %d: not linked to the one before", count)
		case w.state != inQueue:
			return fmt.Errorf("waiter %d: in the line, but in state %d", count, w.state)
		case last != nil:
			tokens += int64(w.tokens)
		}
		last = w
		count++
	}
	if s, ok := q.pace.(*leakyBucket); ok && count > 0 && q.line.head.ticket.turn <= s.last.at {
		return fmt.Errorf("the head's turn is not after the last one")
	}
	switch {
	case q.line.tail != last && count > 0:
		return fmt.Errorf("the tail is not the last of %d", count)
	case q.line.behind != tokens:
		return fmt.Errorf("%d tokens are behind the head, counted as %d", tokens, q.line.behind)
	case count != want:
		return fmt.Errorf("%d wait, not %d", count, want)
	}
	return nil
}

// Tokens returns how many tokens the ticket took.
func (t Ticket) Tokens() int32 { return t.tokens }

// Logged returns how many entries the window keeps of what has passed, for other
// shapes of its rule.
func (w *Window) Logged() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.log == nil {
		return 0
	}
	return cap(w.log.entries)
}
