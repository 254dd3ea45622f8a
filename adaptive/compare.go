package adaptive

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
	"github.com/penstock-go/penstock/clock"
)

const (
	slower      = 1.5                    // times as long as usual: a class is slow
	alone       = 6                      // a class is slow alone if others are less than this part as much slower
	knownEnds   = 24                     // calls of which a mean is taken, with a variation of 0
	apartEnough = 3 * time.Second        // after so long without being slow, a class that went apart comes back
	usualSpan   = 3.                     // seconds, of which the usual rate is
	longSpan    = 30.                    // the most, of calls that are few
	lately      = 1.                     // second, to which response times of late go back if enough calls have ended
	compareAll  = 100 * time.Millisecond // after so long the classes of a group are compared again
)

// recent is what a class did of late.
type recent struct {
	calls, ends float64       // call-seconds, and calls that ended
	span        float64       // seconds
	slow        bool          // clearly longer than usual
	surged      bool          // clearly more calls than usual had come when the class became slow
	fine        float64       // seconds for which the class has not been slow
	rate, held  float64       // ends a second and calls under way when they were not slow
	known       float64       // seconds of which these are
	last, calm  mark          // when the class was compared last, and the time before when it was not slow
	moreAt      clock.Instant // when clearly more calls came than usual, and took no longer
	marks       [2]mark       // earlier ones: since each of them some calls usually come
}

// someCalls is how many calls usually come between two marks: fewer would say nothing about whether more come.
const someCalls = 8

// mark is how many calls had ended or were there at an instant.
type mark struct {
	at    clock.Instant
	ends  uint64
	there float64 // under way or waiting
}

func (c *class) mark(now clock.Instant) mark {
	return mark{now, c.ends.Load(), float64(c.underWay()) + float64(c.queued)}
}

// surge returns how many calls have come since about when the class became slow.
func (c *class) surge(now clock.Instant) limit.Surge {
	s := c.surgeSince(c.recent.calm, now)
	lately := c.surgeSince(c.recent.marks[0], now)
	s.Still = c.recent.marks[0].at > 0 && c.isLasting() && lately.IsMore() && lately.Came > lately.Ended
	return s
}

// isLasting says whether calls usually take longer than the time between two comparisons.
func (c *class) isLasting() bool { return c.usual.Mean() > compareAll.Seconds() }

// noteMore takes down when clearly more calls have come than usual while calls took no longer, of a class whose calls
// take longer than the time between two comparisons: when they are seen to be slow, it is long since more came.
func (c *class) noteMore(now clock.Instant) {
	since, usual := c.recent.marks[0], c.usual.Mean()
	if since.at == 0 || !c.isLasting() || c.response() >= slower*usual {
		return
	}
	if s := c.surgeSince(since, now); s.IsMore() && s.Came > s.Usual+4*math.Sqrt(s.Variance) { // it is looked for often
		c.recent.moreAt = now
	}
}

// surgeSince returns how many calls have come since then.
func (c *class) surgeSince(since mark, now clock.Instant) limit.Surge {
	r, m := &c.recent, c.mark(now)
	span := m.at.Sub(since.at)
	usual, times := r.rate*span.Seconds(), 0.
	if r.slow {
		times = c.response() / c.usual.Mean()
	}
	ended := float64((m.ends - since.ends) & endsMask)
	return limit.Surge{
		Came: ended + m.there - since.there, Ended: ended,
		Usual: usual, Variance: usual * (1 + span.Seconds()/max(r.known, 0.1)),
		Within: span, Growth: m.there - r.last.there, Slower: times,
	}
}

// observe takes what the class did since it was compared last. What it did earlier counts less, once
// enough calls have ended. Free says that no limit keeps calls away.
func (c *class) observe(now clock.Instant, free bool) {
	r := &c.recent
	read := c.read(now)
	all := read.since(c.seen)
	c.seen = read
	if all.Length <= 0 || all.Calls > (callsMask+1)*all.Length.Seconds() {
		return // the clock has been set
	}
	did := all.WithoutQuick()
	r.calls += did.Calls
	r.ends += did.Ended
	r.span += did.Length.Seconds()
	enough := knownEnds * (1 + c.usual.Variation())
	if r.span > lately { // what took longer then may be over
		enough = min(enough, max(knownEnds, r.ends*lately/r.span))
	}
	if r.ends > enough {
		r.calls *= enough / r.ends
		r.span *= enough / r.ends
		r.ends = enough
	}
	expected := r.calls / max(c.usual.Mean(), minResponse)
	least := slower
	if !c.usual.Verified() {
		least *= 2
	}
	// The first calls that end are the short ones. Under a limit, when hardly any calls are under way, such
	// a mean would have others look slow.
	wasSlow := r.slow
	isKnown := c.usual.Verified() || r.ends >= knownEnds && (free || c.usual.Measured())
	r.slow = c.usual.Mean() > 0 && isKnown && c.response() > least*c.usual.Mean() &&
		expected-r.ends > 4*math.Sqrt(expected*(1+c.usual.Variation()))
	if !r.slow {
		c.noteMore(now)
		r.calm = r.last
	} else if !wasSlow {
		r.surged = c.surge(now).IsDemand() || r.moreAt > 0 && r.moreAt >= r.marks[0].at
	}
	r.last = c.mark(now)
	if usual := r.rate * now.Sub(r.marks[1].at).Seconds(); r.marks[1].at == 0 || usual >= someCalls {
		r.marks[0], r.marks[1] = r.marks[1], r.last
	}
	if r.fine += did.Length.Seconds(); r.slow {
		r.fine = 0
	}
	if free && !c.usual.Verified() && c.group.Load().index > 0 {
		c.learnSteady(now)
	}
	if free && !r.slow {
		seconds := did.Length.Seconds()
		span := usualSpan
		if c.isLasting() {
			span = min(max(span, knownEnds/max(r.rate, minResponse)), longSpan)
		}
		r.known = min(r.known+seconds, span)
		weight := min(seconds/r.known, 1)
		r.rate += weight * (all.Ended/seconds - r.rate)
		r.held += weight * (all.Calls/seconds - r.held)
	}
}

// learnSteady takes the response time of a class that went apart for the usual one, if that was never measured and
// as many calls end as come, until all have been replaced three times: the class is short of nothing, and what was
// taken for usual was a guess.
func (c *class) learnSteady(now clock.Instant) {
	m := c.mark(now)
	if c.steady.at == 0 {
		c.steady, c.steadyThere = c.read(now), m.there
		return
	}
	did := c.read(now).since(c.steady)
	least := max(knownEnds*(1+c.usual.Variation()), 3*m.there, 3*c.steadyThere)
	if did.Length < steadyLeast || did.Ended < least && did.Length < steadyMost {
		return
	}
	before := c.steadyThere
	c.steady, c.steadyThere = c.read(now), m.there
	if did.Ended < least || did.Failed > 0 || math.Abs(m.there-before) > did.Ended/20+math.Sqrt(before) {
		return
	}
	seconds := did.Length.Seconds()
	c.usual.Set(did.Calls/did.Ended, did.Ended)
	c.recent = recent{
		calls: did.Calls, ends: did.Ended, span: seconds, last: m, calm: m,
		rate: did.Ended / seconds, held: did.Calls / seconds, known: min(seconds, usualSpan),
	}
}

// For so long, at least and at most, a class is watched for whether as many calls end as come.
const (
	steadyLeast = time.Second
	steadyMost  = 10 * time.Second
)

// response returns the mean response time of late in seconds, calls that have not ended included.
func (c *class) response() float64 { return c.recent.calls / (c.recent.ends + 1) }

// excess returns by how much longer than usual calls took of late: in seconds and as a share, and
// the standard errors of both.
func (c *class) excess() (seconds, share, seconds3, share3 float64) {
	usual := c.usual.Mean()
	deviation := 3 * usual * math.Sqrt(c.usual.Variation()/max(c.recent.ends, 1))
	seconds = max(c.response()-usual, 0)
	return seconds, seconds / usual, deviation, deviation / usual
}

// compare looks for classes that are slow while others of the group are not. They are short of
// something of their own, or their work has changed: they go apart.
func (g *group) compare(now clock.Instant) {
	slowest := g.observe(now)
	if g.calls != &g.own {
		return
	}
	g.countStrangers()
	if g.index > 0 {
		g.comeBack(now)
		if slowest != nil {
			g.release(slowest, now)
			g.merge(now)
		}
		return
	}
	if slowest != nil {
		g.sendApart(slowest, now)
	}
}

// observe has the classes take what they did of late. It returns the slow one that has most calls
// under way; nil if none is slow.
func (g *group) observe(now clock.Instant) (slowest *class) {
	g.compareDue = now.Add(compareAll)
	for _, c := range g.classes {
		c.observe(now, !g.control.Limited())
		if c.recent.slow && (slowest == nil || c.recent.calls/c.recent.span > slowest.recent.calls/slowest.recent.span) {
			slowest = c
		}
	}
	g.divideWork()
	g.setDue()
	return slowest
}

// isLonger says whether calls took longer on average than usual, if that is known, that ended since the limit was
// reached.
func (c *class) isLonger() bool {
	return c.usual.Verified() && c.tested.took > limit.AsUsual*c.tested.ends*c.usual.Mean()
}

// surge returns how many calls of the classes that are slow came since they are; if none is known to be slow, of those
// whose calls took longer since the limit was reached. More calls of a class that does not get slower need nothing that
// is short, however slow others are meanwhile. Where more came only once calls were slow, it returns none: clients ask
// for more of what is slow. The experiment shows whether it is short of something, unless the process is short of
// processors.
func (g *group) surge(now clock.Instant) (s limit.Surge) {
	slow, computes := g.isSlow(), g.control.ShortOfProcessors()
	if g.index > 0 && !slow && !computes {
		return s
	}
	for _, c := range g.classes {
		if c.recent.known == 0 || slow && !c.recent.slow || c.recent.slow && !c.usual.Verified() {
			continue
		}
		if of := c.surge(now); computes || c.recent.slow && c.recent.surged || !slow && c.isLonger() {
			s = s.Plus(of)
		}
	}
	return s
}

// divideWork tells each class the share of the work that it usually does.
func (g *group) divideWork() {
	sum, active := 0., 0.
	for _, c := range g.classes {
		if work := c.recent.rate * c.usual.Mean(); work > 0 {
			sum += work
			active++
		}
	}
	for _, c := range g.classes {
		c.share = 1
		if sum > 0 {
			c.share = max(c.recent.rate*c.usual.Mean()/sum*active, 1)
		}
	}
}

// merge has the classes of a group that is limited, and slow all the same, go under the limit of another
// one of which a shortage was shown a moment ago: it is the same one.
func (g *group) merge(now clock.Instant) {
	for _, to := range g.groups {
		if to == nil || to == g || !g.control.Limited() || !to.control.Limited() ||
			to.changedAt <= g.changedAt || now.Sub(to.changedAt) > sameCause {
			continue
		}
		limit := to.control.Limit() + g.control.Limit()
		g.moveAll(to, now)
		to.countStrangers()
		to.control.Begin(limit)
		to.apply(now)
		to.publish()
		return
	}
}

// sameCause is the time within which two shortages are taken for one, if calls are slow by both.
const sameCause = time.Second

// release has classes go on without the limit of the group that are not slow while another is, unless it is that one
// which is slow for another reason.
func (g *group) release(slow *class, now clock.Instant) {
	if !g.control.Limited() || !slow.usual.Verified() || slow.group.Load() != g {
		return
	}
	if g.index > 0 && g.isStranger(slow) {
		if to := g.freeGroup(now); to != nil {
			g.goApart(slow, to, now)
		}
		return
	}
	g.part(func(c *class) bool { return c.usual.Measured() && (c.compareWith(slow) == spared || c.isFar(slow)) }, now)
}

// isStranger says whether a slow class of a limited group waits for something else than what the limit is about: more calls
// than usual came of a class that is not slow as this one is, but not of this one.
func (g *group) isStranger(slow *class) bool {
	return !slow.recent.surged &&
		slices.ContainsFunc(g.classes, func(c *class) bool { return c.recent.surged && c.compareWith(slow) == spared })
}

// isFar says whether calls of a class take so much longer than those of a slow one that it hardly matters to them whether
// they queue with these, and are not slow as a share of what is usual.
func (c *class) isFar(slow *class) bool {
	_, f, _, f3 := c.excess()
	return c.recent.ends >= knownEnds && c.recent.fine > slow.recent.span && c.isLong(slow.usual.Mean()) && f+f3*2/3 < slower-1
}

// likeness says how a class compares with a slow one.
type likeness uint8

const (
	unclear  likeness = iota
	affected          // it is slow by as much, in seconds or as a share
	spared            // it is not
	long              // it could be, but would hardly be slow
)

// compareWith compares a class with a slow one.
func (c *class) compareWith(slow *class) likeness {
	s, f, s3, f3 := c.excess()
	most, share, _, _ := slow.excess()
	switch {
	case c == slow, c.recent.slow && (s > most/alone || f > share/alone):
		return affected
	case c.recent.ends >= knownEnds && c.recent.fine > slow.recent.span && s+s3 < most/alone && f+f3 < share/alone:
		return spared
	case c.isLong(slow.usual.Mean()):
		return long
	case s-s3 > most/2, f-f3 > share/2:
		return affected
	}
	return unclear
}

// tested is what a class did while the limit was reached: how many calls ended, their response times
// in seconds, and how many of them had begun then, with theirs.
type tested struct {
	ends, took           float64
	begunEnds, begunTook float64
}

func (t *tested) add(took float64, begun bool) {
	t.ends++
	t.took += took
	if begun {
		t.begunEnds++
		t.begunTook += took
	}
}

// testedExcess returns by which share the mean of some response times is longer than usual, and the
// standard error.
func (c *class) testedExcess(ends, took float64) (share, deviation float64) {
	if ends == 0 || c.usual.Mean() == 0 {
		return 0, math.Inf(1)
	}
	return took/ends/c.usual.Mean() - 1, math.Sqrt(c.usual.Variation() / ends)
}

// divide has the classes go on without a limit that were not slow while it was reached and others
// were. At a start, when nothing is known of any, they are compared with their first calls. It returns the group that
// has the control then.
func (g *group) divide(now clock.Instant) *group {
	if g.control.GivenUp() { // though perhaps not the clients of all
		return g.part((*class).isWell, now)
	}
	var slow *class
	most, longest := 0., 0. // by how much calls took longer; usual response time of the classes that did
	isStart := !slices.ContainsFunc(g.classes, func(c *class) bool { return c.tested.ends > 0 && c.usual.Verified() })
	for _, c := range g.classes {
		usual := c.usual.Mean()
		if usual == 0 || !c.usual.Verified() && !isStart {
			continue
		}
		if excess := c.tested.took - c.tested.ends*usual; excess > most {
			slow, most = c, excess
		}
		if share, deviation := c.testedExcess(c.tested.ends, c.tested.took); share-2*deviation > slower-1 {
			longest = max(longest, usual)
		}
	}
	if slow == nil {
		return g
	}
	longest = max(longest, slow.usual.Mean())
	return g.part(func(c *class) bool { return c != slow && c.isUnlike(slow, longest, now) }, now)
}

// isSlower says whether calls are known to take longer than usual, or at a start, when that is not known of the group, than
// the first of them since the limit was reached.
func (c *class) isSlower(now clock.Instant) bool {
	if c.group.Load().control.Known() {
		return c.recent.slow
	}
	return c.usual.IsLongerThanFirst(c.read(now).since(c.reached).WithoutQuick())
}

// isWell says whether calls of a class took about as long as usual of late, and most did not fail in the window.
func (c *class) isWell() bool {
	return c.did.Failed < c.did.Ended/2 && c.response() < slower*c.usual.Mean()
}

// isUnlike says whether what a class did since the limit was reached shows that it is not slow as another
// class is: its calls took less than half as much longer, or less than 1.5 times as long as usual, both in seconds
// and as a share. If its calls usually take so much longer than those that were slow that it hardly matters whether
// they queue with them, they have to show themselves that they are short of something.
func (c *class) isUnlike(slow *class, longest float64, now clock.Instant) bool {
	if slow.usual.Verified() && c.isLong(longest) {
		if share, deviation := c.testedExcess(c.tested.begunEnds, c.tested.begunTook); share-2*deviation < slower-1 {
			return true
		}
	}
	_, longer := slow.sinceReached(now)
	ends, share := c.sinceReached(now)
	deviation := 2 * math.Sqrt(c.usual.Variation()/ends)
	if c.usual.Measured() && !c.hasMore() {
		share, deviation = (share+1)*max(ends, 1)/(ends+1)-1, 0 // it is not to blame
	} else if ends < fewTested {
		return false
	}
	most, bound := share+deviation, max(longer/2, slower-1)
	return most < bound && most*c.usual.Mean() < bound*slow.usual.Mean()
}

// sinceReached returns how many calls ended since the limit was reached, and by which share longer than
// usual calls took, those that have not ended included.
func (c *class) sinceReached(now clock.Instant) (ends, share float64) {
	did := c.read(now).since(c.reached).WithoutQuick()
	return did.Ended, did.Calls/max(did.Ended, 1)/c.usual.Mean() - 1
}

// isLong says whether calls of a class take so much longer than others that it hardly matters to them whether they queue
// with these. If more of them are there than usual, it may be they who keep the others waiting.
func (c *class) isLong(others float64) bool {
	usual := c.usual.Mean()
	if !c.usual.Verified() {
		usual = c.response()
	}
	return usual > alone*others && !c.hasMore()
}

// hasMore says whether clearly more calls of a class are there than usual, or have come of late. It says so as long as it
// is not known what is usual.
func (c *class) hasMore() bool {
	r := &c.recent
	there, ended := float64(c.underWay())+float64(c.queued), r.rate*r.span
	return r.known < lately || (limit.Surge{Came: there, Usual: r.held, Variance: r.held}).IsMore() ||
		(limit.Surge{Came: r.ends + there, Usual: ended + r.held, Variance: ended + r.held}).IsMore()
}

// fewTested is of how many calls the mean says something.
const fewTested = 3

// part has some classes of a group that is limited, or about to be, go on without its limit: in the
// common group. If this is the common group, the others go apart and take the control along. It returns
// the group that has it then.
func (g *group) part(isSpared func(*class) bool, now clock.Instant) *group {
	var spared, others []*class
	for _, c := range g.classes {
		switch {
		case c.did.Calls == 0 && c.underWay() == 0:
		case isSpared(c):
			spared = append(spared, c)
		default:
			others = append(others, c)
		}
	}
	if len(spared) == 0 {
		return g
	}
	if g.index > 0 {
		for _, c := range spared {
			g.control.Leave(c.recent.rate*c.weight, float64(c.underWay()))
			g.remove(c, now)
			g.groups[0].welcome(c, now)
		}
		g.limitAsUsual()
		g.countStrangers()
		return g
	}
	to := g.freeGroup(now)
	if to == nil {
		return g
	}
	to.control, to.queueLimit = g.control, g.queueLimit
	g.control, g.queueLimit = g.control.Open(), queueLimit{}
	for _, c := range spared {
		to.control.Leave(c.recent.rate*c.weight, float64(c.underWay()))
		g.control.Expect(c.recent.rate*c.weight, float64(c.underWay()))
	}
	for _, c := range others {
		g.remove(c, now)
		to.add(c, now)
	}
	g.countStrangers()
	to.countStrangers()
	if len(others) == 1 { // what is known of all is not about this one
		to.control.Rescale(others[0].weight)
		others[0].weight = 1
		to.control.Adopt(&others[0].usual, to.control.Limit())
	}
	to.limitAsUsual()
	to.went, to.slowAt, to.changedAt = now, now, now
	to.beginWindow(now)
	to.apply(now)
	to.publish()
	return to
}

// limitAsUsual lowers the limit to what is plenty for the classes that are left, as far as that is known. What
// was known of all of them was mostly about those that take long.
func (g *group) limitAsUsual() {
	held := 0.
	for _, c := range g.classes {
		if c.recent.known == 0 && c.underWay() > 0 {
			return
		}
		held += c.recent.held
	}
	if held > 0 {
		g.control.Usually(held)
	}
}

// sendApart has a slow class go apart with those that are like it, if others are not.
func (g *group) sendApart(slow *class, now clock.Instant) {
	var leaving []*class
	others, underWay, doubtful := false, uint64(0), uint64(0)
	did, left, held := 0., 0., 0.
	for _, c := range g.classes {
		did += c.recent.ends / max(c.recent.span, 1e-3)
		switch c.compareWith(slow) {
		case affected:
			left += c.recent.ends / max(c.recent.span, 1e-3)
			held += c.recent.held
			leaving = append(leaving, c)
			underWay += c.underWay()
		case spared:
			others = true
		case unclear:
			doubtful += c.underWay()
		}
	}
	if g.control.Limited() && left > did/2 { // it is they whom the limit is about
		g.release(slow, now)
		return
	}
	to := g.limitedLike(slow)
	if to != nil && now.Sub(slow.recent.calm.at) < together {
		return // it may be over soon
	}
	if to == nil && (!others || float64(underWay) < min(g.control.Limit()/2, g.control.Plenty(held)) || doubtful > underWay/4) {
		return
	}
	isJoining := to != nil
	if !isJoining {
		to = g.groupFor(slow, now)
	}
	if to == nil {
		return
	}
	for _, c := range leaving {
		if !isJoining || c.recent.slow {
			g.goApart(c, to, now)
		}
	}
}

// goApart moves a class to a group of its own, or to that of classes that went at about the same
// time. Calls under way stay counted where they passed.
func (g *group) goApart(c *class, to *group, now clock.Instant) {
	if g.control.Limited() {
		g.control.Leave(c.recent.rate*c.weight, c.recent.held)
	} else {
		g.control.Expect(-c.recent.rate*c.weight, -c.recent.held)
	}
	g.remove(c, now)
	n := float64(c.underWay())
	switch {
	case len(to.classes) == 0:
		to.control.Adopt(&c.usual, max(n, float64(to.current.rule.InitialLimit)))
	case to.control.Limited():
		to.control.Begin(to.control.Limit() + c.recent.held)
	default:
		to.control.Begin(to.control.Limit() + n)
	}
	to.welcome(c, now)
	to.went, to.slowAt, to.changedAt = now, now, now
	g.countStrangers()
}

// together is the time within which classes that are slow are so for the same reason.
const together = 500 * time.Millisecond

// limitedLike returns the group that is limited and as slow as a class, which will be short of the same thing
// however few of its calls are under way; nil if there is none.
func (g *group) limitedLike(c *class) *group {
	for _, to := range g.groups[1:] {
		if to != nil && len(to.classes) > 0 && to.control.Limited() && to.isLike(c) {
			return to
		}
	}
	return nil
}

// groupFor returns the group for a class that goes apart: one from which others went at about the
// same time, or that is as slow; nil if there are too many.
func (g *group) groupFor(c *class, now clock.Instant) *group {
	for i := 1; i < maxGroups; i++ {
		to := g.groups[i]
		if to != nil && len(to.classes) > 0 && (now.Sub(to.went) <= together || to.isLike(c) && (!c.recent.surged || to.surged())) {
			return to
		}
	}
	return g.freeGroup(now)
}

// surged says whether more calls than usual came of a class of the group before they became slow.
func (g *group) surged() bool {
	return slices.ContainsFunc(g.classes, func(c *class) bool { return c.recent.slow && c.recent.surged })
}

// freeGroup returns a group without classes; nil if there is none.
func (g *group) freeGroup(now clock.Instant) *group {
	for i := 1; i < maxGroups; i++ {
		if g.groups[i] == nil || len(g.groups[i].classes) == 0 {
			if g.groups[i] == nil {
				g.groups[i] = newGroup(g.overload, i, now)
			} else {
				g.groups[i].renew(now)
			}
			return g.groups[i]
		}
	}
	return nil
}

// isLike says whether classes of the group are slow by about as much as another class.
func (g *group) isLike(slow *class) bool {
	s, f, _, _ := slow.excess()
	for _, c := range g.classes {
		seconds, share, _, _ := c.excess()
		if share > slower-1 && (seconds > s/3 && seconds < 3*s || share > f/3 && share < 3*f) {
			return true
		}
	}
	return false
}

// comeBack moves the classes of the group back to the common one if they have not been slow for
// long.
func (g *group) comeBack(now clock.Instant) {
	for _, c := range g.classes {
		if c.recent.slow {
			g.slowAt = now
		}
	}
	if g.control.Limited() || g.control.Testing() {
		g.slowAt = now
	}
	if to := g.groups[0]; now.Sub(g.slowAt) >= apartEnough && g.underWay() < to.limit { // else their calls would keep others out
		g.moveAll(to, now)
	}
}

// gather has groups that are limited come back to the common one when that is, too: they may be
// short of the same thing.
func (g *group) gather(now clock.Instant) {
	for _, from := range g.groups[1:] {
		if from == nil || len(from.classes) == 0 || !from.control.Limited() {
			continue
		}
		limit := g.control.Limit() + from.control.Limit()
		from.moveAll(g, now)
		g.control.Begin(limit)
	}
}

// gatherSlow has resources that are slow apart come under the limit of a group that was just found short of something by an
// experiment: they may be what takes the workers of the others. They were slow while these were not, so that is how long
// their own work takes. If they share nothing, they are as fast as that while the others are slow, and go on.
func (g *group) gatherSlow(now clock.Instant) {
	for _, from := range g.groups[1:] {
		if from == nil || from == g || len(from.classes) == 0 || from.control.Limited() {
			continue
		}
		limit := g.control.Limit()
		for _, c := range from.classes {
			if c.recent.slow {
				c.usual.Set(c.response(), knownEnds)
			}
		}
		from.moveAll(g, now)
		g.countStrangers()
		g.control.Begin(limit)
		g.apply(now)
		g.publish()
	}
}

// moveAll has all classes of the group go to another one.
func (g *group) moveAll(to *group, now clock.Instant) {
	for len(g.classes) > 0 {
		c := g.classes[0]
		g.remove(c, now)
		to.welcome(c, now)
	}
}

// welcome takes a class that comes from another group.
func (g *group) welcome(c *class, now clock.Instant) {
	if base := g.control.Baseline(); base > 0 {
		c.weight = max(c.usual.Mean(), minResponse) / base
	}
	g.add(c, now)
	g.control.Expect(c.recent.rate*c.weight, c.recent.held)
	g.apply(now)
	g.publish()
}

// countStrangers counts calls under way of classes that have left the group, less those that are
// counted elsewhere of classes that have come.
func (g *group) countStrangers() {
	g.strangers = int64(g.underWay())
	for _, c := range g.classes {
		g.strangers -= int64(c.underWay())
	}
}
