package fairqueue

import "slices"

// longest finds the tenant that has most calls waiting, for its weight. Tenants of one weight are a
// class, which has a list of those that have 2 calls, one of those that have 3, and so on. Those with
// one call are in no list: nobody loses the only call that waits, but for unknown ones in a flood.
type longest struct{ classes []class }

type class struct {
	weight, inverse float64
	lists           []uint32 // the first tenant of each, by the number of calls
	greatest        uint32   // the highest number of calls of a tenant; 0 if none has 2
	tenants         int
	group           uint8
}

// classOf returns the class of a weight in a group.
func (l *longest) classOf(weight float64, group uint8) uint16 {
	unused := len(l.classes)
	for i := range l.classes {
		switch c := &l.classes[i]; {
		case c.weight == weight && c.group == group:
			return uint16(i)
		case c.tenants == 0:
			unused = i
		}
	}
	if unused == len(l.classes) {
		l.classes = append(l.classes, class{})
	}
	c := &l.classes[unused]
	c.weight, c.inverse, c.group = weight, 1/weight, group
	return uint16(unused)
}

// classOf returns the class of a tenant that waits.
func (q *Queue[T]) classOf(i uint32) *class { return &q.longest.classes[q.tenants.records[i].class] }

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

// class returns the class that the tenant with the greatest share is of; nil if none has 2 calls. Those
// of a group that is left out do not count.
func (l *longest) class(without uint8) (longest *class) {
	for i := range l.classes {
		if c := &l.classes[i]; c.greatest > 0 && c.group != without && (longest == nil || c.share() > longest.share()) {
			longest = c
		}
	}
	return longest
}

// MakesWay returns the call that makes way for a new one of a tenant when the queue is full: the
// newest one of the tenant that has most calls waiting for its weight, if that would have more than
// the tenant of the new call has with it. It is nil if the new call is to be refused. In a flood of
// unknown tenants that goes for known and for unknown ones among themselves; of the calls of those that
// have more of the queue, one makes way for one of the others.
func (q *Queue[T]) MakesWay(tenant uint64, weight float64, isKnown bool) *T {
	without := neither
	if q.flood.lasts {
		own := groupOf(isKnown)
		if i := q.tenants.find(tenant); i != 0 {
			own = q.classOf(i).group
		}
		without = 1 - own
		if q.groups[without].length > q.groups[own].length+1 {
			return q.lastWithout(own)
		}
	}
	c := q.longest.class(without)
	if c == nil || float64(q.Waiting(tenant)+1)/weight >= c.share() {
		return nil
	}
	return q.newestOf(c)
}

// NobodyMakesWay says whether no call makes way for one of an unknown tenant, whichever it is.
func (q *Queue[T]) NobodyMakesWay() bool {
	return q.flood.lasts && q.groups[known].length <= q.groups[unknown].length+1 && q.longest.class(known) == nil
}

// Last returns the call that is the first to go when there are too many: the newest one of the tenant
// that has most calls waiting for its weight or, if all have one, of the tenant that is served last;
// nil if none waits. In a flood it is one of an unknown tenant, unless the known ones have more of the
// queue.
func (q *Queue[T]) Last() *T {
	switch {
	case q.length == 0:
		return nil
	case !q.flood.lasts:
		return q.lastWithout(neither)
	case q.groups[known].length > q.groups[unknown].length:
		return q.lastWithout(unknown)
	}
	return q.lastWithout(known)
}

// lastWithout is Last of the tenants of all groups but one.
func (q *Queue[T]) lastWithout(without uint8) *T {
	if c := q.longest.class(without); c != nil {
		return q.newestOf(c)
	}
	return q.tenants.records[q.last(without)].newest.value
}

// newestOf returns the newest call of a tenant that has most of a class.
func (q *Queue[T]) newestOf(c *class) *T { return q.tenants.records[c.lists[c.greatest]].newest.value }

// recount notes how many calls of a tenant wait now: one more than before, or one less.
func (q *Queue[T]) recount(i, count uint32) {
	t := &q.tenants.records[i]
	c := q.classOf(i)
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

// reclass gives another weight to a tenant that waits, or puts it into another group.
func (q *Queue[T]) reclass(i uint32, weight float64, group uint8) {
	t := &q.tenants.records[i]
	c := q.classOf(i)
	q.unlist(c, i)
	c.lower()
	c.tenants--
	t.class = q.longest.classOf(weight, group)
	c = q.classOf(i)
	c.tenants++
	q.enlist(c, i)
}
