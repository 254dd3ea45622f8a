package access

import (
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
)

// monitor reports when the list of a rule is missing, and when it is there again: once
// for all resources that the rule guards, by the first call that notices. A rule may
// guard ten thousand resources, and its list is the same for all of them.
type monitor struct {
	missing atomic.Bool // what was reported last

	mu        sync.Mutex // guards what follows and writes to missing; not held while something is reported
	version   uint64     // of the rule, the latest that has reported
	reporting bool
}

// differs says whether a state has not been reported yet.
func (m *monitor) differs(missing bool) bool { return m.missing.Load() != missing }

// report reports the present state, unless that was the last one reported, or a later
// version of the rule is in force. Changes are reported one at a time and in order; if
// another goroutine is reporting, it looks again before it ends.
func (m *monitor) report(l *limiter, now clock.Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reporting || l.rule.version < m.version {
		return
	}
	m.version = l.rule.version
	m.reporting = true
	defer func() { m.reporting = false }() // also when a report panics
	for {
		_, missing := l.present()
		if !m.differs(missing) {
			return
		}
		m.missing.Store(missing)
		m.send(l, now, missing)
	}
}

// send reports a change to this state, and releases the mutex meanwhile.
func (m *monitor) send(l *limiter, now clock.Instant, missing bool) {
	m.mu.Unlock()
	defer m.mu.Lock()
	l.changed(now, stateOf(!missing), stateOf(missing), "")
}

func stateOf(missing bool) string {
	if missing {
		return ListMissing
	}
	return Ready
}
