package exchange

import "github.com/penstock-go/penstock/clock"

// Due returns when Step is to be called next: an instant that has passed if at once, the last
// instant there is if never. It becomes earlier when calls come.
func (x *Exchange) Due() clock.Instant { return clock.Instant(x.due.Load()) }

// Unlock sets when the member is due, releases the mutex, and makes the calls that had to
// wait for that: to those who wait for answers or tokens, and to the log.
func (x *Exchange) Unlock(now clock.Instant) {
	calls := x.calls
	x.calls = nil
	x.setDue(now)
	x.Mu.Unlock()
	for _, call := range calls {
		call()
	}
}

func (x *Exchange) setDue(now clock.Instant) {
	due := min(x.limits.Next(now), x.connection.due(), x.announceDue(), x.probeDue())
	if len(x.batches) > 0 { // a recharge
		due = min(due, now)
	}
	for _, batch := range x.underWay {
		if !batch.Arrived.Load() {
			due = min(due, batch.Deadline)
		}
	}
	if x.due.Swap(int64(due)) > int64(due) {
		x.signal()
	}
	x.Hasten(x.limits.Woken(now)) // since those were taken that calls have woken
}

// Hasten has the member due at an instant, if it is not earlier.
func (x *Exchange) Hasten(at clock.Instant) {
	for {
		due := x.due.Load()
		if due <= int64(at) {
			return
		}
		if x.due.CompareAndSwap(due, int64(at)) {
			x.signal()
			return
		}
	}
}

// signal tells whoever steps the member that it is due earlier.
func (x *Exchange) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}
