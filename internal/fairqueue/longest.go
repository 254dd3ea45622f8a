package fairqueue

import "slices"

// longest finds the tenant that has most calls waiting, for its weight. Tenants of one weight are a
// class, which has a list of those that have 2 calls, one of those that have 3, and so on. Those with
// one call are in no list: nobody loses the only call that waits.
type longest struct{ classes []class }

type class struct {
	weight, inverse float64
	lists           []uint32 // the first tenant of each, by the number of calls
	greatest        uint32   // the highest number of calls of a tenant; 0 if none has 2
	tenants         int
}

// classOf returns the class of a weight.
func (l *longest) classOf(weight float64) uint16 {
	unused := len(l.classes)
	for i := range l.classes {
		switch c := &l.classes[i]; {
		case c.weight == weight:
			return uint16(i)
		case c.tenants == 0:
			unused = i
		}
	}
	if unused == len(l.classes) {
		l.classes = append(l.classes, class{})
	}
	c := &l.classes[unused]
	c.weight, c.inverse = weight, 1/weight
	return uint16(unused)
}

// shrink gives the memory of lists back that are longer than that. No tenant waits.
func (l *longest) shrink(kept int) {
	for i := range l.classes {
		if cap(l.classes[i].lists) > kept {
			l.classes[i].lists = nil
		}
	}
}

// share returns how many calls the tenant of the class has that has most, for its weight.
func (c *class) share() float64 { return float64(c.greatest) * c.inverse }

// lower lowers the greatest number of calls to that which some tenant has.
func (c *class) lower() {
	for c.greatest > 1 && c.lists[c.greatest] == 0 {
		c.greatest--
	}
	if c.greatest == 1 {
		c.greatest = 0
	}
}

// class returns the class that the tenant with the greatest share is of; nil if none has 2 calls.
func (l *longest) class() (longest *class) {
	for i := range l.classes {
		if c := &l.classes[i]; c.greatest > 0 && (longest == nil || c.share() > longest.share()) {
			longest = c
		}
	}
	return longest
}

// MakesWay returns the call that makes way for a new one of a tenant when the queue is full: the
// newest one of the tenant that has most calls waiting for its weight, if that would have more than
// the tenant of the new call has with it. It is nil if the new call is to be refused.
func (q *Queue[T]) MakesWay(tenant uint64, weight float64) *T {
	c := q.longest.class()
	if c == nil || float64(q.Waiting(tenant)+1)/weight >= c.share() {
		return nil
	}
	return q.tenants.records[c.lists[c.greatest]].newest.value
}

// Last returns the call that is the first to go when there are too many: the newest one of the tenant
// that has most calls waiting for its weight or, if all have one, of the tenant that is served last;
// nil if none waits.
func (q *Queue[T]) Last() *T {
	if q.length == 0 {
		return nil
	}
	if c := q.longest.class(); c != nil {
		return q.tenants.records[c.lists[c.greatest]].newest.value
	}
	return q.tenants.records[q.last()].newest.value
}

// recount notes how many calls of a tenant wait now: one more than before, or one less.
func (q *Queue[T]) recount(i, count uint32) {
	t := &q.tenants.records[i]
	c := &q.longest.classes[t.class]
	q.unlist(c, i)
	t.count = count
	q.enlist(c, i)
	c.lower() // by one at most, as the tenant is in the list below
}

func (q *Queue[T]) unlist(c *class, i uint32) {
	t := &q.tenants.records[i]
	if t.count < 2 {
		return
	}
	if t.before == 0 {
		c.lists[t.count] = t.after
	} else {
		q.tenants.records[t.before].after = t.after
	}
	if t.after != 0 {
		q.tenants.records[t.after].before = t.before
	}
}

func (q *Queue[T]) enlist(c *class, i uint32) {
	t := &q.tenants.records[i]
	if t.count < 2 {
		return
	}
	if n := int(t.count) + 1; n > len(c.lists) {
		c.lists = slices.Grow(c.lists, n-len(c.lists))[:n]
	}
	first := &c.lists[t.count]
	t.before, t.after = 0, *first
	if *first != 0 {
		q.tenants.records[*first].before = i
	}
	*first = i
	c.greatest = max(c.greatest, t.count)
}

// reweigh gives another weight to a tenant that waits.
func (q *Queue[T]) reweigh(i uint32, weight float64) {
	t := &q.tenants.records[i]
	c := &q.longest.classes[t.class]
	q.unlist(c, i)
	c.lower()
	c.tenants--
	t.class = q.longest.classOf(weight)
	c = &q.longest.classes[t.class]
	c.tenants++
	q.enlist(c, i)
}
