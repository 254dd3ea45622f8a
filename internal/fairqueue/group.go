package fairqueue

// group is the tenants that are known, or those that are not.
type group struct {
	ring    ring
	tenants int
	length  int   // calls of them
	work    int64 // that they have got in this flood
	mean    mean  // of the costs of their calls that waited
}

// The groups, and what is none of them.
const (
	known   uint8 = 0
	unknown uint8 = 1
	neither uint8 = 2
)

func groupOf(isKnown bool) uint8 {
	if isKnown {
		return known
	}
	return unknown
}

// fewUnknown is how many unknown tenants may wait for those that are served to become known, and how
// many are never a flood.
const fewUnknown = 32

// flood is a time in which many tenants wait that are not known.
type flood struct {
	lasts  bool
	number uint32 // of the flood that lasts, or was the last one
	turn   int64  // the work of the group that was served last, before that
}

// isIn says whether the flood of that number lasts.
func (f *flood) isIn(number uint32) bool { return f.lasts && f.number == number }

// serve notes that a call of a group is served, and returns the number of the flood; 0 if there is none.
func (f *flood) serve(g *group, cost int64) uint32 {
	if !f.lasts {
		return 0
	}
	f.turn = max(f.turn, g.work)
	g.work += cost
	return f.number
}

// join counts a tenant that begins to wait. What its group did not use while none of it waited is not
// made up for.
func (g *group) join(f *flood) {
	if g.tenants++; g.tenants == 1 {
		g.work = max(g.work, f.turn)
	}
}

// judge finds out whether there is a flood.
func (q *Queue[T]) judge() {
	lasts := q.groups[unknown].tenants > max(q.Flood, fewUnknown, 2*q.groups[known].tenants)
	if lasts == q.flood.lasts {
		return
	}
	q.flood.lasts = lasts
	if lasts {
		q.flood.turn = 0
		q.groups[known].work, q.groups[unknown].work = 0, 0
		q.flood.number = max(q.flood.number+1, 1)
	}
}

// IsFlooded says whether there is a flood of unknown tenants.
func (q *Queue[T]) IsFlooded() bool { return q.flood.lasts }

// Unknown returns how many tenants wait that are not known.
func (q *Queue[T]) Unknown() int { return q.groups[unknown].tenants }

// acquaint makes a tenant known that is served while few unknown ones wait.
func (q *Queue[T]) acquaint(i uint32) {
	from, to := &q.groups[unknown], &q.groups[known]
	if from.tenants == 0 || from.tenants > fewUnknown || q.classOf(i).group == known {
		return
	}
	if q.sorted {
		q.take(i)
	}
	count := int(q.tenants.records[i].count)
	from.tenants, from.length = from.tenants-1, from.length-count
	to.join(&q.flood)
	to.length += count
	q.reclass(i, q.classOf(i).weight, known)
	if q.sorted {
		q.enter(i)
	}
}

// first returns the tenant whose call is served next. One waits.
func (q *Queue[T]) first() uint32 {
	switch {
	case !q.sorted:
		return q.only()
	case q.groups[unknown].tenants == 0:
		return q.firstOf(known)
	case q.groups[known].tenants == 0:
		return q.firstOf(unknown)
	case !q.flood.lasts:
		return q.firstOfBoth()
	case q.groups[unknown].work < q.groups[known].work:
		return q.firstOf(unknown)
	}
	return q.firstOf(known)
}

// firstOfBoth returns the first tenant of both groups as if they were one: within a slot, that which came
// there first.
func (q *Queue[T]) firstOfBoth() uint32 {
	i, j := q.firstOf(known), q.firstOf(unknown)
	a, b := &q.tenants.records[i], &q.tenants.records[j]
	ring := &q.groups[known].ring
	switch difference := ring.align(b.tag) - ring.align(a.tag); {
	case difference > 0:
		return i
	case difference < 0, int32(b.placed-a.placed) < 0:
		return j
	}
	return i
}

// last returns the tenant of all groups but one with the greatest tag, as far as the slots tell.
func (q *Queue[T]) last(without uint8) uint32 {
	switch {
	case !q.sorted:
		return q.only()
	case without == known, q.groups[known].tenants == 0:
		return q.lastIn(&q.groups[unknown].ring)
	case without == unknown, q.groups[unknown].tenants == 0:
		return q.lastIn(&q.groups[known].ring)
	}
	i, j := q.lastIn(&q.groups[known].ring), q.lastIn(&q.groups[unknown].ring)
	if q.tenants.records[j].tag-q.tenants.records[i].tag < 0 {
		return i
	}
	return j
}
