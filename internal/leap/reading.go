package leap

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/stat"
)

// InFlight returns how many calls are between Pass and Done.
func (n *Node) InFlight() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inFlight()
}

// Waiting returns how many calls are waiting.
func (n *Node) Waiting() int64 {
	if r := n.rare.Load(); r != nil {
		return r.waiting.Load()
	}
	return 0
}

// Calls returns how many calls passed or were blocked since the node was made.
func (n *Node) Calls() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.accountOf(&n.passed).total().events + n.accountOf(&n.blocked).total().events
}

// Totals returns the sums since the node was made, and the present state. Each
// sum is exact; calls that happen meanwhile may be in one and not yet in another.
func (n *Node) Totals() stat.Totals {
	t := n.Sums()
	t.ResponseTimes = n.responseTimes.Snapshot()
	return t
}

// Sums returns what Totals does, without ResponseTimes.
func (n *Node) Sums() stat.Totals {
	n.mu.Lock()
	defer n.mu.Unlock()
	done, passed, blocked := n.accountOf(&n.done).total(), n.accountOf(&n.passed).total(), n.accountOf(&n.blocked).total()
	t := stat.Totals{
		InFlight:      n.inFlight(),
		Waiting:       n.Waiting(),
		Passed:        passed.events,
		Blocked:       blocked.events,
		Completed:     done.events,
		PassedTokens:  passed.sum,
		BlockedTokens: blocked.sum,
		ResponseTime:  time.Duration(done.sum),
	}
	if r := n.rare.Load(); r != nil {
		waited := n.accountOf(&r.waited).total()
		t.Failed, t.Waited = n.accountOf(&r.failed).total().events, waited.events
		t.WaitTime = time.Duration(waited.sum)
	}
	return t
}

// ResponseTimes returns the distribution of the response times since the node was made.
func (n *Node) ResponseTimes() stat.Distribution { return n.responseTimes.Snapshot() }

// Minute returns the last 60 seconds, oldest first; the last of them contains now.
func (n *Node) Minute(now clock.Instant) []stat.Second {
	n.mu.Lock()
	defer n.mu.Unlock()
	last := secondOf(now)
	minute := make([]stat.Second, 0, KeptSeconds)
	for s := last - KeptSeconds + 1; s <= last; s++ {
		minute = append(minute, n.at(s))
	}
	return minute
}

// CallsOfMinute returns how many calls passed and were blocked in the seconds of [Node.Minute]
// together. It costs less than that.
func (n *Node) CallsOfMinute(now clock.Instant) (passed, blocked uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	last, open := secondOf(now), n.second.Load()
	first := max(last, open) - KeptSeconds + 1
	if open < first {
		return 0, 0
	}
	if open <= last {
		passed, blocked = n.accountOf(&n.passed).second().events, n.accountOf(&n.blocked).second().events
	}
	if n.minute != nil {
		first, end := max(first, last-KeptSeconds+1), min(open, last+1)
		passed += n.minute.sum(columnPassed, first, end)
		blocked += n.minute.sum(columnBlocked, first, end)
	}
	return passed, blocked
}

// Second returns what happened in one calendar second, given as seconds since the epoch.
// Seconds are kept for a minute at least.
func (n *Node) Second(second int64) stat.Second {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at(second)
}

// Through returns what happened up to the end of a second, which is given as seconds since the
// epoch: its counts and ResponseTime are sums since the node was made, its maxima those of the
// second. What was counted late, for seconds before that, is part of it. Of what came after
// the second, no more is left out than is kept: a minute.
func (n *Node) Through(second int64) stat.Second {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, open := n.at(second), n.second.Load()
	n.setSums(&s, second >= open)
	for later := max(second, open-KeptSeconds) + 1; later < open; later++ {
		after := n.at(later)
		s.Passed -= after.Passed
		s.Blocked -= after.Blocked
		s.Completed -= after.Completed
		s.Failed -= after.Failed
		s.Waited -= after.Waited
		s.ResponseTime -= after.ResponseTime
	}
	return s
}

// setSums sets the counts of s to the sums since the node was made, with those of the open
// second or without. The caller holds n.mu.
func (n *Node) setSums(s *stat.Second, withOpen bool) {
	sums := stat.Second{Start: s.Start}
	for _, a := range n.accounts(new([5]account)) {
		sum := a.before
		if withOpen {
			sum = a.total()
		}
		n.addTo(&sums, a.first, sum)
	}
	sums.MaxInFlight, sums.MaxResponseTime = s.MaxInFlight, s.MaxResponseTime
	*s = sums
}

// Idle says whether no call passed, was blocked or ended in the minute before now or
// later, and none is under way or waits.
func (n *Node) Idle(now clock.Instant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inFlight() > 0 || n.Waiting() > 0 {
		return false
	}
	open := n.second.Load() // in which there mostly is something
	for second := open; second > max(open, secondOf(now))-KeptSeconds; second-- {
		if s := n.at(second); s.Passed+s.Blocked+s.Completed+s.Waited > 0 {
			return false
		}
	}
	return true
}

// at returns a second. The caller holds n.mu.
func (n *Node) at(second int64) stat.Second {
	var s stat.Second
	switch open := n.second.Load(); {
	case second == open:
		s = n.openSecond()
	case n.minute != nil && second < open && second > open-KeptSeconds:
		var k kept
		n.minute.get(second, &k)
		s = k.Second
	}
	s.Start = clock.Instant(second * int64(time.Second))
	return s
}
