package kindtest

import "github.com/penstock-go/penstock/rule"

// stricter returns how many calls pass by the stricter rule.
func (f *fixture) stricter() int {
	other := *f
	other.of.Rule = f.of.Stricter
	return len(other.exhaust(other.limiter(), 1, f.of.Passes+1))
}

// adoptChangesNothingYet asks the present version while a newer one is there that no call has come
// to.
func adoptChangesNothingYet(f *fixture) {
	present := f.limiter()
	if f.of.Passes <= 0 {
		before := f.decision(present)
		f.adopt(present)
		if after := f.decision(present); after != before {
			f.Errorf("a newer version that no call has asked changes what the present one says, from decision %d to %d", before, after)
		}
		return
	}
	tickets := f.expect(present, 1, f.of.Passes, "of a new limiter")
	f.adopt(present)
	if _, decision := present.Acquire(f.call(1)); decision == rule.Pass || decision == rule.Stale {
		f.Errorf("a newer version that no call has asked changes what the present one says: it passes a call, or is stale")
	}
	f.giveBack(present, tickets[:1])
	if _, decision := present.Acquire(f.call(1)); decision != rule.Pass {
		f.Errorf("a newer version that no call has asked changes what the present one lets pass")
	}
}

// decision returns what a call gets, which gives back what it takes.
func (f *fixture) decision(l rule.Limiter) rule.Decision {
	ticket, decision := l.Acquire(f.call(1))
	if decision == rule.Pass {
		l.GiveBack(f.now, ticket, 1)
	}
	return decision
}

// newerVersionGoesOn asks the newer version about what the present one has counted.
func newerVersionGoesOn(f *fixture) {
	f.limited()
	if f.of.Forgets {
		f.Skip("a changed rule starts anew")
	}
	present := f.limiter()
	tickets := f.expect(present, 1, f.of.Passes, "of a new limiter")
	next := f.adopt(present)
	if _, decision := f.acquire(next, f.call(1)); decision == rule.Pass {
		f.Errorf("a call passes by the newer version of the rule, though the present one has given all away")
	}
	f.giveBack(present, tickets)
	f.expect(next, 1, f.stricter(), "by the newer version, once all of the older one was given back")
}

// olderVersionIsStale asks the older version after a call has come to the newer one, and after
// that was activated.
func olderVersionIsStale(f *fixture) {
	if f.of.Forgets {
		f.Skip("a changed rule starts anew")
	}
	present := f.limiter()
	next := f.adopt(present)
	f.decision(next)
	if _, decision := present.Acquire(f.call(1)); decision != rule.Stale {
		f.Errorf("a call passes by, or is refused by, a version of the rule that is not in force any more")
	}
	present = f.limiter()
	next = f.adopt(present)
	if a, ok := next.(rule.Activator); ok {
		a.Activate(f.now)
		if _, decision := present.Acquire(f.call(1)); decision != rule.Stale {
			f.Errorf("the older version is not stale after Activate of the newer one")
		}
	}
}
