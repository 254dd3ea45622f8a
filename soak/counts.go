package main

// counts counts calls by their results.
type counts struct {
	calls, passed, failed    uint64
	blocked, gaveUp, invalid uint64
}

func (t *target) counts() counts {
	return counts{t.calls.Load(), t.passed.Load(), t.failed.Load(), t.blocked.Load(), t.gaveUp.Load(), t.invalid.Load()}
}

func (n *counts) add(more counts) {
	n.calls += more.calls
	n.passed += more.passed
	n.failed += more.failed
	n.blocked += more.blocked
	n.gaveUp += more.gaveUp
	n.invalid += more.invalid
}

// all returns the counts of all calls so far.
func (s *soak) all() (sum counts) {
	for _, e := range s.subjects() {
		for _, t := range e.targets {
			sum.add(t.counts())
		}
	}
	return sum
}
