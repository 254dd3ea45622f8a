package waitqueue

import "github.com/penstock-go/penstock/internal/fairqueue"

// Tenant says whose call it is that joins a queue with [Queue.ShareFairly].
type Tenant struct {
	Key    uint64  // a hash of what tells tenants apart
	Weight float64 // above 0
	Cost   int64   // of the call, for [Queue.Ahead]; 0 if nobody asks for that
	Known  bool    // it is not of those that may be invented, see [fairqueue.Queue.Flood]
}

// Charge is what the tenant of a call was charged with when it was served, for [Queue.Settle]. The
// zero value is that of a call that was not in the fair order.
type Charge struct {
	charge fairqueue.Charge
	level  int8 // and one; 0 for none
}

// IsSet says whether a tenant was charged.
func (c Charge) IsSet() bool { return c.level > 0 }

// KnownTenant returns the tenant that was charged, if it is known from now on.
func (c Charge) KnownTenant() (key uint64, ok bool) {
	return c.charge.Tenant, c.IsSet() && c.charge.IsKnown()
}

// ShareFairly says that each tenant gets its share of the places of a level from now on, about how
// many tenants are remembered that do not wait, and how many unknown ones that wait are a flood, see
// [fairqueue.Queue.Flood]. With 0 tenants it stops. Calls that wait go on as before: they
// keep their order among themselves, and are served before a call that joins later would be if it
// were the only one of its tenant.
func (q *Queue[W]) ShareFairly(remembered, flood int) {
	q.remembers, q.flood = remembered, flood
	for i := range q.levels {
		if fair := q.levels[i].fair; fair != nil {
			fair.Flood = flood
		}
	}
}

// SharesFairly says whether calls that join are of tenants.
func (q *Queue[W]) SharesFairly() bool { return q.remembers > 0 }

// PushOf is Push for a call of a tenant, of a queue that shares fairly.
func (q *Queue[W]) PushOf(w *W, n *Node[W], level int, t Tenant) {
	q.arrivals++
	n.waiter, n.order = w, q.arrivals<<levelBits|uint64(level)
	l := &q.levels[level]
	if l.fair == nil {
		l.fair = fairqueue.New[Node[W]](q.remembers)
		l.fair.Flood = q.flood
	}
	n.fair.Cost = t.Cost
	l.fair.Push(n, &n.fair, t.Key, t.Weight, t.Known)
	q.occupied |= 1 << level
	q.length++
}

// ServeAt is Serve for a call that may be of a tenant, which is charged with a cost; it may be
// [fairqueue.Unknown].
func (q *Queue[W]) ServeAt(n *Node[W], cost int64) Charge {
	if !n.fair.Waits() {
		q.Serve(n)
		return Charge{}
	}
	q.count(n)
	level := n.level()
	charge := q.levels[level].fair.Serve(&n.fair, cost)
	q.left(level)
	return Charge{charge, int8(level) + 1}
}

// Settle tells what a call has cost that ServeAt has charged.
func (q *Queue[W]) Settle(c Charge, cost int64) {
	if c.level > 0 {
		q.levels[c.level-1].fair.Settle(c.charge, cost)
	}
}

// Learn takes note of what a call has cost of which no tenant was charged.
func (q *Queue[W]) Learn(cost int64) {
	for i := range q.levels {
		if fair := q.levels[i].fair; fair != nil {
			fair.Learn(cost)
		}
	}
}

// MakesWay returns the call that makes way for a call of the lowest level at which calls wait, see
// [fairqueue.Queue.MakesWay]. Calls that joined while tenants had no shares do not make way.
func (q *Queue[W]) MakesWay(t Tenant) *W {
	fair := q.levels[q.Lowest()].fair
	if fair == nil {
		return nil
	}
	if n := fair.MakesWay(t.Key, t.Weight, t.Known); n != nil {
		return n.waiter
	}
	return nil
}

// Ahead returns how much work of its own level is served before a call of a tenant that joins now, if no
// other call does: at most, see [fairqueue.Queue.Ahead]; false if that is not known.
func (q *Queue[W]) Ahead(level int, t Tenant, most int64) (work int64, ok bool) {
	l := &q.levels[level]
	switch {
	case l.oldest != nil: // calls that joined while tenants had no shares
		return 0, false
	case l.fair == nil:
		return 0, true
	}
	return l.fair.Ahead(t.Key, t.Weight, t.Known, most), true
}

// NobodyMakesWay says whether no call makes way for one of an unknown tenant, whichever it is.
func (q *Queue[W]) NobodyMakesWay() bool {
	fair := q.levels[q.Lowest()].fair
	return fair != nil && fair.NobodyMakesWay()
}

// IsFlooded says whether there is a flood of unknown tenants at a level.
func (q *Queue[W]) IsFlooded(level int) bool {
	fair := q.levels[level].fair
	return fair != nil && fair.IsFlooded()
}

// Unknown returns how many tenants wait that are not known, and whether they are a flood at some level.
func (q *Queue[W]) Unknown() (tenants int, isFlood bool) {
	for i := range q.levels {
		if fair := q.levels[i].fair; fair != nil {
			tenants += fair.Unknown()
			isFlood = isFlood || fair.IsFlooded()
		}
	}
	return tenants, isFlood
}

// Tenants returns how many tenants wait; one that waits at several levels counts as several.
func (q *Queue[W]) Tenants() int {
	count := 0
	for i := range q.levels {
		if fair := q.levels[i].fair; fair != nil {
			count += fair.Tenants()
		}
	}
	return count
}

// TenantShare is the calls of one tenant that wait at one level.
type TenantShare[W any] struct {
	Waiting int
	Oldest  *W
}

// Longest returns the shares of those tenants that have most calls waiting, at most so many. It looks
// at all tenants.
func (q *Queue[W]) Longest(most int) []TenantShare[W] {
	var shares []TenantShare[W]
	for i := range q.levels {
		fair := q.levels[i].fair
		if fair == nil {
			continue
		}
		for _, s := range fair.Longest(make([]fairqueue.Share[Node[W]], 0, most)) {
			at := len(shares)
			for at > 0 && shares[at-1].Waiting < s.Waiting {
				at--
			}
			shares = append(shares[:at], append([]TenantShare[W]{{s.Waiting, s.Oldest.waiter}}, shares[at:]...)...)
		}
	}
	return shares[:min(most, len(shares))]
}

// first returns the call that is served first; nil if none waits.
func (l *level[W]) first(newest bool) *Node[W] {
	n := l.end(newest)
	if l.fair == nil {
		return n
	}
	if f := l.fair.First(); n == nil || f != nil && f.order < n.order {
		return f
	}
	return n
}

// sharesFairly says whether calls are in the fair order.
func (l *level[W]) sharesFairly() bool { return l.fair != nil && l.fair.Len() > 0 }

func (l *level[W]) allFair(yield func(*W) bool) bool {
	if l.fair == nil {
		return true
	}
	for n := range l.fair.All() {
		if !yield(n.waiter) {
			return false
		}
	}
	return true
}
