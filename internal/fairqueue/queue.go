// Package fairqueue is the order in which waiting calls of several tenants are served, so that
// each tenant gets its share of what is served, however many calls the others have waiting. It is
// start-time fair queuing (Goyal, Vin and Cheng, 1996), with costs that are known when a call ends.
//
// Each tenant that waits has a tag, the work that it has got so far, divided by its weight. The
// next call is the oldest one of the tenant with the least tag, and its cost is added to the tag. A
// tenant that begins to wait starts at the tag of the call that was served last, the virtual time of
// the queue: what it did not use while it did not wait is not made up for. What it has had too much
// then is remembered for a while, see [history].
//
// The cost of a call is often known only when it has ended. Until then it counts as the mean of the
// calls of its tenant, see [Queue.Settle].
//
// Calls of one tenant are served in the order in which they came. Tenants are told apart exactly:
// none shares its place with another one. Pushing, serving and removing a call takes constant time,
// as tags are sorted into slots of an eighth of a mean call, in which tenants wait in the order in
// which they came there: so two tenants differ by at most two slots more than they would in the
// order of their tags.
//
// Whoever invents a new tenant for each call has as many shares as calls. So a caller may say which
// tenants are known, see [Queue.Flood]: while many others wait, these get half of what is served.
//
// All is plain data: no clock, no lock. Nothing is allocated for a call once the queue has been as
// long before.
package fairqueue

import (
	"iter"
	"math/bits"
)

// Queue is the calls that wait, of which T is what the caller knows of one. It is made by [New]. A
// Queue is not safe for concurrent use.
type Queue[T any] struct {
	// Flood is how many tenants that are not known have to wait, and be twice as many as those that
	// are, for them to be a flood; never less than 32. Known and unknown tenants then get half of what
	// is served each, and have half of the queue. Otherwise there is one order for all. It may change
	// while calls wait.
	Flood int

	length  int
	virtual int64 // the tag of the call that was served last, or less if that was the least of all
	tenants table[T]
	groups  [2]group
	sorted  bool   // tenants stand in the rings of their groups: several have waited at once
	placed  uint32 // how often a tenant was placed in a ring
	flood   flood
	longest longest
	history history
	mean    mean // of the costs of all calls that ended
}

// Node is the place of one call in a queue; the caller embeds it. The zero value is in none. It can
// be used again when it has left the queue.
type Node[T any] struct {
	Cost int64 // of the call, for [Queue.Ahead]; 0 if nobody asks for that

	value        *T
	newer, older *Node[T] // of the same tenant
	tenant       uint32   // the index of its record; 0 if the node is in no queue
}

// Waits says whether the call is in a queue.
func (n *Node[T]) Waits() bool { return n.tenant != 0 }

// Charge is what a call that was served has been charged with, for [Queue.Settle].
type Charge struct {
	Tenant  uint64
	start   int64   // the tag of the tenant before
	cost    int64   // that was added to the tag
	inverse float64 // 1 / the weight of the tenant
	flood   uint32  // the number of the flood in which it was served; 0 if there was none
	group   uint8
}

// IsKnown says whether the call is one of a known tenant, or one that is known from now on, as few
// others waited when it was served.
func (c Charge) IsKnown() bool { return c.group == known }

// fraction is how many bits a tag has for fractions of a unit of work, so that the shares of heavy
// tenants do not drift.
const fraction = 10

// maxWork is the most that a call can cost.
const maxWork = 1 << 48

func bounded(cost int64) int64 { return min(max(cost, 0), maxWork) }

// scaled returns what work adds to the tag of a tenant.
func scaled(work int64, inverse float64) int64 {
	return int64(min(float64(work<<fraction)*inverse, 1<<58))
}

// New returns an empty queue. It remembers about so many tenants that do not wait.
func New[T any](remembered int) *Queue[T] {
	q := &Queue[T]{history: newHistory(remembered)}
	q.tenants.init()
	return q
}

// Len returns how many calls wait.
func (q *Queue[T]) Len() int { return q.length }

// Tenants returns how many tenants have calls that wait.
func (q *Queue[T]) Tenants() int { return q.tenants.count }

// Waiting returns how many calls of a tenant wait.
func (q *Queue[T]) Waiting(tenant uint64) int {
	return int(q.tenants.records[q.tenants.find(tenant)].count)
}

// Push has a call of a tenant wait as the newest one of it. The weight is above 0: a tenant of
// weight 2 gets twice as much as one of weight 1. One that differs from that of the calls of the
// tenant which wait already is the weight of all of them from now on. While calls of a tenant wait that
// is not known, it does not become known by others that are pushed.
func (q *Queue[T]) Push(value *T, n *Node[T], tenant uint64, weight float64, isKnown bool) {
	i := q.tenants.find(tenant)
	isNew := i == 0
	if isNew {
		i = q.open(tenant, weight, groupOf(isKnown))
	} else if c := q.classOf(i); c.weight != weight {
		q.reclass(i, weight, c.group)
	}
	t := &q.tenants.records[i]
	n.value, n.tenant, n.older = value, i, t.newest
	if t.newest == nil {
		t.oldest = n
	} else {
		t.newest.newer = n
	}
	t.newest = n
	q.length++
	q.groups[q.classOf(i).group].length++
	t.work += n.Cost
	q.recount(i, t.count+1)
	switch {
	case !isNew:
		return
	case q.sorted:
		q.enter(i)
	case q.tenants.count > 1:
		q.begin(i)
	}
	q.judge()
}

// open makes the record of a tenant that begins to wait.
func (q *Queue[T]) open(tenant uint64, weight float64, group uint8) uint32 {
	i := q.tenants.add(tenant)
	t := &q.tenants.records[i]
	t.tag = q.virtual
	if e := q.history.find(tenant); e != nil && e.finish-t.tag > 0 {
		t.tag = e.finish
	}
	t.class = q.longest.classOf(weight, group)
	q.longest.classes[t.class].tenants++
	q.groups[group].join(&q.flood)
	return i
}

// First returns the call that is served next; nil if none waits.
func (q *Queue[T]) First() *T {
	if q.length == 0 {
		return nil
	}
	return q.tenants.records[q.first()].oldest.value
}

// Serve takes the call out of the queue that First has returned, and charges its tenant. If the
// cost is not known yet it is [Unknown].
func (q *Queue[T]) Serve(n *Node[T], cost int64) Charge {
	i := n.tenant
	t := &q.tenants.records[i]
	if t.tag-q.virtual > 0 {
		q.advance(t.tag)
	}
	if cost == Unknown {
		cost = q.estimate(t.key, q.classOf(i).group)
	}
	cost = bounded(cost)
	q.acquaint(i)
	class := q.classOf(i)
	c := Charge{
		Tenant: t.key, start: t.tag, cost: cost, inverse: class.inverse, group: class.group,
		flood: q.flood.serve(&q.groups[class.group], cost),
	}
	t.tag += scaled(cost, c.inverse)
	isLast := t.count == 1
	q.Remove(n)
	if !isLast && q.sorted {
		q.move(i)
	}
	return c
}

// Unknown is the cost of a call of which it is known only when it has ended.
const Unknown = -1

// Remove takes a call out of the queue. Its tenant is charged nothing.
func (q *Queue[T]) Remove(n *Node[T]) {
	i := n.tenant
	t := &q.tenants.records[i]
	if n.older == nil {
		t.oldest = n.newer
	} else {
		n.older.newer = n.newer
	}
	if n.newer == nil {
		t.newest = n.older
	} else {
		n.newer.older = n.older
	}
	t.work -= n.Cost
	*n = Node[T]{}
	q.length--
	q.groups[q.classOf(i).group].length--
	q.recount(i, t.count-1)
	if t.count == 0 {
		q.close(i)
		q.judge()
	}
}

// close drops the record of a tenant that waits no more, and remembers what it has had too much.
func (q *Queue[T]) close(i uint32) {
	t := &q.tenants.records[i]
	if e := q.history.find(t.key); e != nil {
		e.finish = t.tag
	} else if t.tag-q.virtual > 0 {
		q.history.add(t.key, q.virtual).finish = t.tag
	}
	if q.sorted {
		q.take(i)
	}
	c := q.classOf(i)
	c.tenants--
	q.groups[c.group].tenants--
	q.tenants.drop(i)
	if q.length == 0 {
		q.shrink()
	}
}

// shrink gives memory back that an exceptional number of tenants needed. The queue is empty.
func (q *Queue[T]) shrink() {
	const kept = 1 << 12
	if cap(q.tenants.records) > kept {
		q.tenants.init()
	}
	q.longest.shrink(kept)
}

// Settle tells what a call has cost that Serve has charged, when it has ended: the tenant is
// charged the difference.
func (q *Queue[T]) Settle(c Charge, cost int64) {
	cost = bounded(cost)
	q.learn(c.Tenant, cost)
	q.groups[c.group].mean.add(cost)
	difference := scaled(cost, c.inverse) - scaled(c.cost, c.inverse)
	if q.flood.isIn(c.flood) {
		q.groups[c.group].work += cost - c.cost
	}
	if i := q.tenants.find(c.Tenant); i != 0 {
		q.tenants.records[i].tag += difference
		if difference != 0 && q.sorted {
			q.move(i)
		}
		return
	}
	// Not the virtual time plus the difference, which would count errors of one sign alone.
	end := c.start + scaled(cost, c.inverse)
	e := q.history.find(c.Tenant)
	if e == nil {
		e = q.history.add(c.Tenant, q.virtual)
	}
	if e.finish += difference; end-e.finish > 0 {
		e.finish = end
	}
}

// Learn takes note of what a call has cost that did not wait.
func (q *Queue[T]) Learn(cost int64) { q.mean.add(bounded(cost)) }

func (q *Queue[T]) learn(tenant uint64, cost int64) {
	q.mean.add(cost)
	e := q.history.find(tenant)
	if e == nil {
		e = q.history.add(tenant, q.virtual)
	}
	e.learn(cost)
}

// estimate returns what a call of a tenant costs, as far as is known: the mean of its own calls, else
// that of all, in a flood that of its group.
func (q *Queue[T]) estimate(tenant uint64, group uint8) int64 {
	if e := q.history.find(tenant); e != nil && e.calls() >= ownCalls {
		return int64(e.cost)
	}
	if m := &q.groups[group].mean; q.flood.lasts && m.calls > 0 {
		return int64(m.value)
	}
	return int64(q.mean.value)
}

// ownCalls is how many calls of a tenant have to end before their mean says more than that of all.
const ownCalls = 4

// advance sets the virtual time.
func (q *Queue[T]) advance(to int64) {
	q.virtual = to
	if to-q.history.swept > sweepAfter {
		q.history.sweep(to)
	}
}

// mean is the mean of the last calls, the latest of which count most.
type mean struct {
	value float64
	calls int
}

func (m *mean) add(cost int64) {
	m.calls = min(m.calls+1, 256)
	m.value += (float64(cost) - m.value) / float64(m.calls)
}

// All yields the calls that wait, those of one tenant in the order in which they came. The call that
// it has yielded may be removed.
func (q *Queue[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		if q.length == 0 {
			return
		}
		for i := 1; i < len(q.tenants.records); i++ {
			for n := q.tenants.records[i].oldest; n != nil; {
				next := n.newer
				if !yield(n.value) {
					return
				}
				n = next
			}
		}
	}
}

// Share is what one tenant has in the queue.
type Share[T any] struct {
	Waiting int // calls
	Oldest  *T
}

// Longest returns the shares of the tenants that have most calls waiting, at most so many as
// there is space for in shares. It looks at all tenants.
func (q *Queue[T]) Longest(shares []Share[T]) []Share[T] {
	found := shares[:0]
	for i := range q.tenants.records {
		t := &q.tenants.records[i]
		if t.count == 0 {
			continue
		}
		at := len(found)
		for at > 0 && found[at-1].Waiting < int(t.count) {
			at--
		}
		if len(found) < cap(shares) {
			found = found[:len(found)+1]
		}
		if at < len(found) {
			copy(found[at+1:], found[at:])
			found[at] = Share[T]{int(t.count), t.oldest.value}
		}
	}
	return found
}

// log2 returns the exponent of the largest power of two that is not above x; 0 if x is below 1.
func log2(x float64) int {
	if x < 1 {
		return 0
	}
	return bits.Len64(uint64(x)) - 1
}
