package places

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Ledger is what a store keeps of one limit. The zero value is that of a limit of which the store
// knows nothing. Times are microseconds of the store's clock.
type Ledger struct {
	records map[string]*record

	limit   int64 // the lowest by which an instance claims, see lowest
	born    int64 // when it was made
	settle  int64 // nothing is granted before
	next    int64 // when a lease may end, or a turn is over
	number  int64 // the highest that was told
	crowded int64 // instances that want more than their target
	turn    int64 // when the turns change; 0 if there are none
}

// record is what it keeps of an instance.
type record struct {
	id      string
	limit   int64 // by which it claims
	held    int64 // places that the instance has been told of, and calls that it has beyond them
	allowed int64 // of these, those that calls to come may have
	granted int64 // places that it has not been told of
	offered int64 // when that began to be so
	isDeaf  bool  // it has not asked for what it was granted in time
	want    int64
	spare   int64
	seq     int64
	expires int64
	turn    int64 // when it had one place more: the tenure, counted from the epoch, and its place in it
	target  int64
	number  int64
}

// Claim takes a claim, and returns the answer and the instances that were granted places meanwhile
// and should be told, in the order of their names. The store is young if it has started of late.
func (l *Ledger) Claim(now int64, young bool, c *Claim) (Grant, []string) {
	r := l.records[c.Instance]
	if r != nil && c.Sequence <= r.seq {
		return Grant{Late: true}, nil
	}
	life := c.Life.Microseconds()
	if l.isSame(now, r, c) {
		r.seq, r.expires, r.want = c.Sequence, now+life, c.Want
		return l.grant(now, r), nil
	}
	if l.born == 0 {
		l.born, l.records = now, map[string]*record{}
		if c.Born != 0 || young {
			l.settle = now + settling(life)
		}
	}
	l.dropEnded(now)
	if r = l.records[c.Instance]; r == nil {
		r = &record{id: c.Instance, turn: -1}
		l.records[c.Instance] = r
	}
	r.limit, l.number = c.Limit, max(l.number, c.Number)
	l.limit = l.lowest()
	others := l.total() - r.held - r.granted
	r.allowed = max(0, min(c.Held+r.granted, min(c.Limit, l.limit)-others))
	r.held = max(c.InUse, r.allowed)
	r.isDeaf = false
	r.granted, r.want, r.spare, r.seq = 0, c.Want, c.Spare, c.Sequence
	r.expires, r.number = now+life, max(r.number, c.Number)
	if life == 0 {
		l.leave(now, r, c.InUse)
	}
	l.takeBack(now)
	all := l.all()
	l.divide(now, all)
	told := l.hand(now, all, r)
	l.setNext(now)
	g := l.grant(now, r)
	if end := l.firstEnd(); l.crowded > 0 && end-now <= soon(life) {
		g.Ends = time.Duration(end-now) * time.Microsecond
	}
	return g, told
}

// soon is within which time of a life a lease ends of which the others are told: longer than a heartbeat,
// shorter than what is left of the leases of those that claim in time.
func soon(life int64) int64 { return life * 2 / 5 }

// isSame says whether a claim changes nothing but the end of the lease, and no other one has ended or does soon.
func (l *Ledger) isSame(now int64, r *record, c *Claim) bool {
	if r == nil || r.limit != c.Limit || now >= l.next-soon(c.Life.Microseconds()) || c.Life == 0 || c.Held != r.held || r.allowed != r.held || c.InUse > c.Held ||
		r.granted != 0 || c.Spare != r.spare || c.Number > r.number {
		return false
	}
	return c.Want == r.want || c.Want > r.target && r.want > r.target
}

// lowest is the limit of all: while a change of it is rolled out, the lowest by which an instance
// claims. So no more places are had than by any of the limits, and those who have the lower one get
// their part of it. A limit of 0 is that of its instances alone.
func (l *Ledger) lowest() (limit int64) {
	for _, r := range l.records {
		if r.limit > 0 && (limit == 0 || r.limit < limit) {
			limit = r.limit
		}
	}
	return limit
}

// leave has an instance want nothing any more. What is in use counts for a while.
func (l *Ledger) leave(now int64, r *record, inUse int64) {
	r.held, r.allowed, r.want, r.spare, r.limit = inUse, inUse, inUse, 0, 0
	r.expires = now + FinalLife.Microseconds()
	if inUse == 0 {
		delete(l.records, r.id)
	}
}

func (l *Ledger) dropEnded(now int64) {
	for id, r := range l.records {
		if r.expires <= now {
			delete(l.records, id)
		}
	}
}

// takeBack takes back what instances were granted and have not asked for in time, as those do that are
// paused. They do not know of it.
func (l *Ledger) takeBack(now int64) {
	for _, r := range l.records {
		if r.granted > 0 && r.offered <= now-Offer.Microseconds() {
			r.granted, r.isDeaf = 0, true
		}
	}
}

// wants is how many places an instance wants that it can be given.
func (r *record) wants() int64 {
	switch {
	case r.isDeaf:
		return min(r.want, r.held)
	case r.limit == 0:
		return 0
	}
	return r.want
}

// spares is how many it would keep free.
func (r *record) spares() int64 {
	if r.limit == 0 {
		return 0
	}
	return r.spare
}

// all returns the records in the order of turns: those who had one place more longest ago first.
func (l *Ledger) all() []*record {
	return slices.SortedFunc(maps.Values(l.records), func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.id, b.id))
	})
}

func (l *Ledger) total() (sum int64) {
	for _, r := range l.records {
		sum += r.held + r.granted
	}
	return sum
}

// divide sets the targets: by what the instances want and then, if all have that, by what they
// would keep free.
func (l *Ledger) divide(now int64, all []*record) {
	wants, spares := make([]int64, len(all)), make([]int64, len(all))
	wanted := int64(0)
	for i, r := range all {
		wants[i], spares[i] = r.wants(), r.spares()
		wanted += wants[i]
	}
	slot := now / Tenure.Microseconds()
	order := turns(all, slot)
	parts, left := fill(wants, l.limit, order)
	l.crowded, l.turn = 0, 0
	if wanted <= l.limit {
		extra, _ := fill(spares, l.limit-wanted, order)
		for i, r := range all {
			r.target = parts[i] + extra[i]
		}
		return
	}
	if left > 0 {
		l.turn = (slot + 1) * Tenure.Microseconds()
	}
	most := slices.Max(parts)
	for position, i := range order {
		r := all[i]
		if r.target = parts[i]; r.target < wants[i] {
			l.crowded++
		}
		if left > 0 && parts[i] == most && r.turn < slot*turnsPerTenure { // only who has one that was left over has so many
			r.turn = slot*turnsPerTenure + int64(min(position, turnsPerTenure-1))
		}
	}
}

// turnsPerTenure is how many instances have turns of their own in one tenure.
const turnsPerTenure = 1 << 16

// turns returns the order in which instances get what is left over: first those who have it in this
// tenure already, then those who have had it longest ago.
func turns(all []*record, slot int64) []int {
	order := make([]int, 0, len(all))
	for i, r := range all {
		if r.turn >= slot*turnsPerTenure {
			order = append(order, i)
		}
	}
	for i, r := range all {
		if r.turn < slot*turnsPerTenure {
			order = append(order, i)
		}
	}
	return order
}

// hand grants the places that are free to those who are below their targets, most to those who are
// farthest. It returns who other than the one that asks was granted some.
func (l *Ledger) hand(now int64, all []*record, by *record) (told []string) {
	free := l.limit - l.total()
	if now < l.settle || free <= 0 {
		return nil
	}
	missing := make([]int64, len(all))
	order := make([]int, len(all))
	for i, r := range all {
		missing[i], order[i] = max(0, r.target-r.held-r.granted), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(missing[b] - missing[a]) })
	parts, _ := fill(missing, free, order)
	for i, r := range all {
		if parts[i] == 0 {
			continue
		}
		l.number = max(l.number+1, now)
		r.number = l.number
		if r == by {
			r.held += parts[i]
			r.allowed = r.held
		} else {
			if r.granted == 0 {
				r.offered = now
			}
			r.granted += parts[i]
			told = append(told, r.id)
		}
	}
	slices.Sort(told)
	return told
}

// setNext notes when claims that are the same as before may change something.
func (l *Ledger) setNext(now int64) {
	l.next = l.firstEnd()
	for _, r := range l.records {
		if r.granted > 0 {
			l.next = min(l.next, r.offered+Offer.Microseconds())
		}
	}
	if l.turn != 0 {
		l.next = min(l.next, l.turn)
	}
	if l.settle > now {
		l.next = min(l.next, l.settle)
	}
}

// firstEnd is when the first lease ends; 0 if there is none.
func (l *Ledger) firstEnd() (end int64) {
	for _, r := range l.records {
		if end == 0 || r.expires < end {
			end = r.expires
		}
	}
	return end
}

func (l *Ledger) grant(now int64, r *record) Grant {
	g := Grant{
		Held: r.allowed, Target: r.target, Crowded: l.crowded, Instances: int64(len(l.records)), Born: l.born, Number: r.number,
	}
	if l.turn > now && r.turn >= (l.turn/Tenure.Microseconds()-1)*turnsPerTenure {
		g.Turn = time.Duration(l.turn-now) * time.Microsecond
	}
	return g
}
