package penstockprom

// account is what is exposed of a resource, or of several together.
type account struct {
	counts            counts
	inFlight, waiting int64

	refusals map[refuser]uint64 // of rules in force
	former   map[refuser]uint64 // as of the last booking
	used     bool               // something was booked this time
}

func newAccount(buckets int) *account {
	return &account{counts: make(counts, firstBucket+buckets), refusals: make(map[refuser]uint64)}
}

// reopen readies the account for another booking: what is of the moment goes,
// and so do rules unless they are booked again.
func (a *account) reopen() {
	a.inFlight, a.waiting, a.used = 0, 0, false
	a.former, a.refusals = a.refusals, make(map[refuser]uint64)
}

// add books what a reading has on top of an earlier one of the same name, nil if
// there is none.
func (a *account) add(now, earlier *reading) {
	if earlier == nil {
		earlier = new(reading)
	}
	a.used = true
	a.inFlight += now.inFlight
	a.waiting += now.waiting
	a.counts.add(now.counts.since(earlier.counts))
	for by, count := range now.refusals {
		if _, booked := a.refusals[by]; !booked {
			a.refusals[by] = a.former[by]
		}
		if before := earlier.refusals[by]; before <= count { // else the rule was replaced by another
			count -= before
		}
		a.refusals[by] += count
	}
}
