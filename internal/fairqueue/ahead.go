package fairqueue

// Ahead returns how much work is served before a call of a tenant that is pushed now, if no other call is
// pushed later: at most, never less. The calls that wait say what they cost, see [Node], and none of them
// costs more than most. It takes constant time.
func (q *Queue[T]) Ahead(tenant uint64, weight float64, isKnown bool, most int64) int64 {
	if q.length == 0 {
		return 0
	}
	a := ahead{most: float64(bounded(most)), start: q.virtual, group: groupOf(isKnown)}
	if i := q.tenants.find(tenant); i != 0 {
		t, c := &q.tenants.records[i], q.classOf(i)
		a.own, a.weight, a.group = float64(t.work), c.weight, c.group
		a.start = t.tag + scaled(bounded(t.work), 1/weight) // the weight of all of them from now on
	} else if e := q.history.find(tenant); e != nil && e.finish-a.start > 0 {
		a.start = e.finish
	}
	return int64(q.aheadOf(a)) + 1
}

// ahead is a call that comes.
type ahead struct {
	most   float64 // that a call costs
	start  int64   // the tag that its tenant will have when it is the oldest one
	own    float64 // the work of its tenant that waits
	weight float64 // of its tenant, if that waits already; else 0
	group  uint8
}

func (q *Queue[T]) aheadOf(a ahead) float64 {
	before := q.workBefore(a)
	own := a.own
	if a.weight > 0 { // its tenant is among those of its group
		own -= q.upTo(a, a.weight)
	}
	if !q.flood.lasts {
		return own + before[known] + before[unknown]
	}
	// The other group gets as much as this one, and what it has had less. When the flood ends there is
	// one order again for those who are left.
	others := 1 - a.group
	turns := own + before[a.group]
	behind := max(0, float64(q.groups[a.group].work-q.groups[others].work))
	left := before[others]
	if others == unknown {
		few := max(q.Flood, fewUnknown, 2*q.groups[known].tenants)
		left = min(left, left/float64(q.groups[unknown].tenants)*float64(few))
	}
	return 2*turns + behind + a.most + left
}

// workBefore returns how much the tenants of each group get before a call at most: all that brings their
// tags up to that of the call, and a call more each.
func (q *Queue[T]) workBefore(a ahead) (work [2]float64) {
	for i := range q.longest.classes {
		if c := &q.longest.classes[i]; c.tenants > 0 {
			work[c.group] += float64(c.tenants) * q.upTo(a, c.weight)
		}
	}
	return work
}

// upTo returns how much a tenant of a weight gets before a call at most.
func (q *Queue[T]) upTo(a ahead, weight float64) float64 {
	least, slot := q.least()
	span := float64(a.start-least) + 2*slot
	if span < 0 {
		return 0
	}
	return span/(1<<fraction)*weight + a.most
}

// least returns the least tag of all, and the width of a slot, by as much as which it may be less.
func (q *Queue[T]) least() (tag int64, slot float64) {
	if !q.sorted {
		return q.tenants.records[q.only()].tag, 0
	}
	isFirst := true
	for g := range q.groups {
		if q.groups[g].tenants == 0 {
			continue
		}
		i := q.firstOf(uint8(g))
		if t := q.tenants.records[i].tag; isFirst || t-tag < 0 {
			tag, isFirst = t, false
		}
		slot = max(slot, float64(int64(1)<<q.groups[g].ring.shift))
	}
	return tag, slot
}
