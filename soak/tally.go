package main

// tally is what became of calls.
type tally struct {
	calls, passed, failed    uint64
	blocked, gaveUp, invalid uint64
}

func (t *target) tally() tally {
	return tally{t.calls.Load(), t.passed.Load(), t.failed.Load(), t.blocked.Load(), t.gaveUp.Load(), t.invalid.Load()}
}

func (n *tally) add(more tally) {
	n.calls += more.calls
	n.passed += more.passed
	n.failed += more.failed
	n.blocked += more.blocked
	n.gaveUp += more.gaveUp
	n.invalid += more.invalid
}

// all returns what became of all calls so far.
func (s *soak) all() (sum tally) {
	for _, e := range s.subjects() {
		for _, t := range e.targets {
			sum.add(t.tally())
		}
	}
	return sum
}
