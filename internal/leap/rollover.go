package leap

import (
	"time"

	"github.com/penstock-go/penstock/stat"
)

// These methods go over from one second to the next, and count what cannot be counted in
// the word of a tally. Their callers hold n.mu.

// addSlowly counts an event: the first of a second, one that does not fit, or one
// that comes when its second is over.
func (n *Node) addSlowly(t *tally, second int64, quantity uint64) {
	if second > n.second.Load() {
		n.enter(second)
	}
	event, a := count{1, quantity}, n.accountOf(t)
	n.move(t, event)
	if second < n.second.Load() {
		a.before.add(event)
		n.amend(second, func(s *kept) { n.addTo(&s.Second, t, event) })
		n.blockedLate(t, second, event.events)
		return
	}
	if !t.canAdd(tagOf(second), quantity) {
		n.empty(a)
	}
	a.open.add(event)
}

// enter closes the open second and opens a later one.
func (n *Node) enter(second int64) {
	accounts := n.accounts(new([5]account))
	for _, a := range accounts {
		n.close(a)
	}
	n.keep(second)
	tag := tagOf(second)
	n.maxInFlight.reopen(tag) // before anybody can find the second open
	n.maxTook.reopen(tag)
	n.second.Store(second)
	for _, a := range accounts {
		a.end()
		a.reopen(tag)
	}
}

// blockedLate notes that calls which a tally has counted were blocked in a second before the open one.
func (n *Node) blockedLate(t *tally, second int64, events uint64) {
	for i := range n.ownRefusals() {
		if t == &n.blockedBy[i] {
			n.ensureRefused().before[i] += events
			n.amend(second, func(s *kept) { s.by[i] += events })
		}
	}
}

// keep writes the open second, which is closed, and the empty ones after it into the
// minute.
func (n *Node) keep(next int64) {
	ended := n.second.Load()
	s := kept{Second: n.openSecond()}
	if n.refused != nil { // the words are closed: what they had is there
		s.by = n.openRefused()
		n.refused.before = n.refused.total
	}
	if n.minute == nil {
		if s == (kept{}) {
			return
		}
		n.minute = new(leapArray)
	}
	n.minute.put(ended, &s)
	for empty := max(ended+1, next-KeptSeconds); empty < next; empty++ {
		n.minute.put(empty, &kept{})
	}
}

// amend changes a second that is over, if it is still kept.
func (n *Node) amend(second int64, change func(*kept)) {
	if second <= n.second.Load()-KeptSeconds {
		return
	}
	if n.minute == nil {
		n.minute = new(leapArray)
	}
	var s kept
	n.minute.get(second, &s)
	change(&s)
	n.minute.put(second, &s)
}

// accounts returns all accounts, in an array of the caller, that of passed calls last: when its word is open, all of
// them are.
func (n *Node) accounts(in *[5]account) []account {
	all := in[:0]
	if r := n.rare.Load(); r != nil {
		all = append(all, n.accountOf(&r.failed), n.accountOf(&r.waited))
	}
	return append(all, n.accountOf(&n.done), n.accountOf(&n.blocked), n.accountOf(&n.passed))
}

// accountOf returns the account that a tally of the node belongs to.
func (n *Node) accountOf(t *tally) account {
	switch r := n.rare.Load(); {
	case t == &n.passed:
		return account{t, nil, &n.sums[0]}
	case t == &n.done:
		return account{t, nil, &n.sums[1]}
	case r != nil && t == &r.failed:
		return account{t, nil, &r.sums[0]}
	case r != nil && t == &r.waited:
		return account{t, nil, &r.sums[1]}
	}
	return account{&n.blocked, n.blockedBy[:n.ownRefusals()], &n.sums[2]}
}

// close moves what the words of an account have counted to its sums.
func (n *Node) close(a account) {
	for t := range a.tallies() {
		counted := t.take()
		a.open.add(counted)
		n.move(t, counted)
	}
}

// empty does the same, and lets it be added to again.
func (n *Node) empty(a account) {
	n.close(a)
	a.reopen(tagOf(n.second.Load()))
}

// move counts events that are not, or no longer, in the words that calls write.
func (n *Node) move(t *tally, events count) {
	switch t {
	case &n.passed:
		n.moved.Add(int64(events.events))
	case &n.done:
		n.moved.Add(-int64(events.events))
	default:
		for i := range n.ownRefusals() {
			if t == &n.blockedBy[i] && events.events > 0 {
				n.ensureRefused().total[i] += events.events
			}
		}
	}
}

// inFlight returns how many calls are under way.
func (n *Node) inFlight() int64 {
	done := unpack(n.done.word.Load()).events // first: a call passes before it is done
	return n.moved.Load() + int64(unpack(n.passed.word.Load()).events) - int64(done)
}

// openSecond returns what has happened in the open second, without its start.
func (n *Node) openSecond() stat.Second {
	var s stat.Second
	for _, a := range n.accounts(new([5]account)) {
		n.addTo(&s, a.first, a.second())
	}
	s.MaxInFlight = n.maxInFlight.second()
	s.MaxResponseTime = time.Duration(n.maxTook.second())
	return s
}

// openRefused returns how many calls each of the first Refusals has blocked in the open second.
func (n *Node) openRefused() (by [ownTallies]uint64) {
	moved := n.movedRefused()
	for i := range n.ownRefusals() {
		by[i] = moved.total[i] + unpack(n.blockedBy[i].word.Load()).events - moved.before[i]
	}
	return by
}

// addTo adds what a tally has counted to a second.
func (n *Node) addTo(s *stat.Second, t *tally, c count) {
	switch r := n.rare.Load(); {
	case t == &n.passed:
		s.Passed += c.events
	case t == &n.done:
		s.Completed += c.events
		s.ResponseTime += time.Duration(c.sum)
		if c.events == 1 {
			s.MaxResponseTime = max(s.MaxResponseTime, time.Duration(c.sum))
		}
	case r != nil && t == &r.failed:
		s.Failed += c.events
	case r != nil && t == &r.waited:
		s.Waited += c.events
	default:
		s.Blocked += c.events
	}
}
