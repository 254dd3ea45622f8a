package serve

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// What a division adds to the demand of a data plane, so that it need not refuse requests because its
// demand varies, and the least part that one has whatever its demand is, of an even part.
const (
	quotaHeadroom = 0.05
	quotaLeast    = 0.05
)

const (
	// idleReports is how many reports in a row without a request make a bucket idle.
	idleReports = 3

	// minReportTime is the least time by which a rate is measured.
	minReportTime = 100 * time.Millisecond

	// trimPart is by which part of the limit all assignments together may differ from what
	// they should be.
	trimPart = 1.0 / 800

	// renewPart is by which part of an assignment it may differ from what it should be and is
	// renewed as it is: an older Envoy fills its bucket when an assignment changes.
	renewPart = 0.01

	// burstAge is how old an assignment is, at least, that another one follows with all of its burst.
	burstAge = 5 * time.Second

	// spreadSteps is in how many steps all data planes get another assignment that have one
	// of which nothing is known.
	spreadSteps = 10
)

// division divides a limit among the data planes that report requests for one bucket, by their
// demand and max-min fair: who demands less than the others have has that with some headroom,
// and the others have the same part each of what is left. It has no clock and no goroutine, and
// is not safe for concurrent use.
//
// Headroom is on top of the limit. It would be taken from those that could use it otherwise, and
// a data plane that does not need it does not use it. Assignments follow with some tolerance,
// so that there are few messages; so that the tolerated differences do not add up, all together
// are kept to what they should be.
type division struct {
	interval time.Duration // at which data planes report
	ttl      time.Duration // of assignments

	limit float64 // requests per second; infinite if there is none
	burst float64 // the most that max_tokens may be, of small limits

	shares    []*quotaShare
	notBefore clock.Instant // which nothing is assigned, until all have reported
	spread    bool          // nobody has been assigned anything since notBefore
	due       clock.Instant // when divide has something to do although nobody reports

	off []*quotaShare // of trim, kept to allocate nothing
}

// quotaShare is the part of one data plane in the limit of a bucket.
type quotaShare struct {
	stream *quotaStream
	bucket *quotaBucket

	reported   bool          // by this stream
	reportedAt clock.Instant // last
	early      float64       // requests of reports that came too soon after another
	demand     float64       // requests per second
	idle       int           // reports in a row without requests

	part       float64 // requests per second that it should have
	assigned   bool
	told       bool       // by the present stream
	assignment assignment // the last one
	assignedAt clock.Instant
	expiresAt  clock.Instant // of the assignment

	ended  bool // the stream has: the data plane may go on until the assignment expires
	queued bool // to be sent
}

// report takes a report of a data plane: how many requests there were since its last one, and
// how much time has passed since then, as it says. Only in the first report of a stream is that
// believed, as it is in whole seconds.
func (d *division) report(s *quotaShare, now clock.Instant, requests float64, elapsed time.Duration) {
	if s.idle++; requests > 0 {
		s.idle = 0
	}
	if !s.reported {
		s.reported, s.reportedAt = true, now
		if elapsed >= time.Second {
			s.demand = requests / elapsed.Seconds()
		}
		return
	}
	passed := now.Sub(s.reportedAt)
	s.early += requests
	if passed < minReportTime {
		return
	}
	n, seconds := s.early, passed.Seconds()
	s.early, s.reportedAt = 0, now
	if expected := s.demand * seconds; math.Abs(n-expected) > 4*math.Sqrt(max(expected, 4)) {
		s.demand = n / seconds // it has changed
	} else {
		s.demand += (n/seconds - s.demand) * min(max(n/200, 0.05), 0.5)
	}
}

// isSilent says whether a data plane does not report the bucket any more.
func (d *division) isSilent(s *quotaShare, now clock.Instant) bool {
	return now.Sub(s.reportedAt) > (idleReports+1)*d.interval
}

// expire removes those whose assignment has ended with their stream, and those that report no
// more and have no assignment.
func (d *division) expire(now clock.Instant) {
	d.shares = slices.DeleteFunc(d.shares, func(s *quotaShare) bool {
		gone := (s.ended || d.isSilent(s, now)) && (!s.assigned || s.expiresAt <= now)
		if gone {
			s.stream.forget(s)
		}
		return gone
	})
}

// divide says anew what everybody should have, and appends those to send whose assignment
// changes or is to be renewed.
func (d *division) divide(now clock.Instant, send []*quotaShare) []*quotaShare {
	d.expire(now)
	if now < d.notBefore {
		d.due = d.notBefore
		return send
	}
	first := len(send)
	even := d.allot()
	most := len(d.shares)
	if d.spread {
		most, d.spread = (most+spreadSteps-1)/spreadSteps, false
	}
	for _, s := range d.shares {
		switch {
		case s.ended || !d.isDue(s, now, even):
		case len(send)-first < most:
			s.assign(d, now, renewPart)
			send = append(send, s)
		default:
			d.spread = true // in the next step
		}
	}
	if !d.spread {
		send = d.trim(now, send)
	}
	d.due = d.nextDue(now)
	return send
}

// allot computes all parts. It returns an even one.
func (d *division) allot() (even float64) {
	limit, count := d.limit, 0
	for _, s := range d.shares {
		switch {
		case !s.ended:
			count++
		case s.assigned && !math.IsInf(s.assignment.rate, 1):
			limit -= s.assignment.rate // it may go on by that
		}
	}
	if count == 0 {
		return 0
	}
	// A new data plane does not wait with nothing for the assignments of others to expire.
	limit = max(limit, quotaLeast*d.limit*float64(count)/float64(len(d.shares)))
	even = limit / float64(count)
	if limit == 0 || math.IsInf(limit, 1) {
		for _, s := range d.shares {
			s.part = limit
		}
		return even
	}
	level := d.level(limit, even, count)
	total, slack := 0.0, 0.0
	for _, s := range d.shares {
		if s.ended {
			continue
		}
		s.part = min(max((1+quotaHeadroom)*s.demand+math.Sqrt(s.demand)/2, quotaLeast*even), level)
		total += s.part
		slack += s.slack(even)
	}
	if surplus := limit - total; surplus > 0 && math.IsInf(level, 1) {
		for _, s := range d.shares {
			s.part += surplus * s.slack(even) / slack
		}
	}
	return even
}

// slack is what a surplus is divided by: what the demand varies by, and the same for all, for
// demand that is not there yet.
func (s *quotaShare) slack(even float64) float64 { return math.Sqrt(s.demand) + math.Sqrt(even)/2 }

// level returns the most that anybody has: so much that everybody together has the limit;
// infinite if all can have what they demand.
func (d *division) level(limit, even float64, count int) float64 {
	for level := even; ; {
		left, above := limit, 0
		for _, s := range d.shares {
			switch demand := max(s.demand, quotaLeast*even); {
			case s.ended:
			case demand > level:
				above++
			default:
				left -= demand
			}
		}
		if above == 0 {
			return math.Inf(1)
		}
		next := left / float64(above)
		if next <= level || count == 0 {
			return level
		}
		level, count = next, count-1 // at least one more is below it: it ends
	}
}

// isDue says whether a data plane is to get an assignment: because that which it has is too far
// off, or ends.
func (d *division) isDue(s *quotaShare, now clock.Instant, even float64) bool {
	if !s.assigned || !s.told {
		return true
	}
	present := s.assignment.rate
	if present == s.part {
		return d.isRenewalDue(s, now)
	}
	if s.part == 0 || present == 0 || math.IsInf(s.part, 1) || math.IsInf(present, 1) {
		return true
	}
	off := math.Abs(s.part - present)
	tolerance := min(max(0.05, 2/math.Sqrt(s.demand*d.interval.Seconds())), 0.3)
	return off > tolerance*present && off > 0.05*even || d.isRenewalDue(s, now)
}

func (d *division) isRenewalDue(s *quotaShare, now clock.Instant) bool {
	return now >= d.renewAt(s) && !d.isSilent(s, now)
}

func (d *division) renewAt(s *quotaShare) clock.Instant {
	return s.assignedAt.Add(s.expiresAt.Sub(s.assignedAt) / 2)
}

// trim sends to whoever is farthest off, until all assignments together let pass what they should.
func (d *division) trim(now clock.Instant, send []*quotaShare) []*quotaShare {
	if d.limit == 0 || math.IsInf(d.limit, 1) {
		return send
	}
	off := 0.0 // what passes beyond what should
	for _, s := range d.shares {
		off += s.off()
	}
	tolerated := trimPart * d.limit
	if math.Abs(off) <= tolerated {
		return send
	}
	sign := math.Copysign(1, off)
	d.off = d.off[:0]
	for _, s := range d.shares {
		if s.off()*sign > 0 {
			d.off = append(d.off, s)
		}
	}
	slices.SortFunc(d.off, func(a, b *quotaShare) int { return cmp.Compare(sign*b.off(), sign*a.off()) })
	for _, s := range d.off {
		if math.Abs(off) <= tolerated || off*sign < 0 {
			break
		}
		off -= s.off()
		s.assign(d, now, 0)
		send = append(send, s)
	}
	clear(d.off)
	return send
}

// off is how much more a data plane lets pass than it should. What it does not demand makes up for no other.
func (s *quotaShare) off() float64 {
	if s.ended {
		return 0
	}
	return min(s.assignment.rate, s.demand) - min(s.part, s.demand)
}

// nextDue returns when something is to be done although nobody reports.
func (d *division) nextDue(now clock.Instant) clock.Instant {
	if d.spread {
		return now
	}
	due := now.Add(noLimitTTL)
	for _, s := range d.shares {
		switch {
		case !s.assigned:
		case s.ended || d.isSilent(s, now):
			due = min(due, s.expiresAt)
		default:
			due = min(due, d.renewAt(s))
		}
	}
	return due
}

// assign gives a data plane its part from now on. What it has is renewed if it differs by no more
// than the tolerance, a part of it.
func (s *quotaShare) assign(d *division, now clock.Instant, tolerance float64) {
	a := &s.assignment
	if same := a.rate == s.part || math.Abs(s.part-a.rate) <= tolerance*a.rate; !s.assigned || !same {
		*a = assignmentOf(s.part, d.burst, d.burstTime(s, now), *a)
	}
	ttl := d.ttl
	if math.IsInf(s.part, 1) {
		ttl = noLimitTTL
	}
	s.assigned, s.told, s.assignedAt, s.expiresAt = true, true, now, now.Add(ttl)
}

// burstTime returns for how long a data plane may use its next rate at once. An older Envoy has a full bucket with each
// assignment: where one soon follows another, as when a limit is new, it has less of one.
func (d *division) burstTime(s *quotaShare, now clock.Instant) time.Duration {
	age, whole := now.Sub(s.assignedAt), max(d.interval, burstAge)
	if !s.assigned || age >= whole {
		return burstTime
	}
	return time.Duration(float64(burstTime) * float64(age) / float64(whole))
}

// end notes that the stream has ended. Its data plane may go on by what it was assigned, unless
// it has said that it ends: then that is free at once.
func (d *division) end(s *quotaShare, clean bool) {
	s.ended = true
	if clean || !s.assigned {
		d.remove(s)
	}
}

// remove takes a data plane out of the division.
func (d *division) remove(s *quotaShare) {
	d.shares = slices.DeleteFunc(d.shares, func(other *quotaShare) bool { return other == s })
}

// join adds a data plane. It takes the place of a stream of the same peer that has ended, if there is
// one. Whether it goes on with that assignment is not known: it may have been started anew, or be
// another behind the same address. So it is told what it has.
func (d *division) join(s *quotaShare) {
	for i, other := range d.shares {
		if other.ended && other.stream.peer == s.stream.peer {
			s.demand, s.assigned, s.assignment = other.demand, other.assigned, other.assignment
			s.assignedAt, s.expiresAt = other.assignedAt, other.expiresAt
			d.shares[i] = s
			return
		}
	}
	d.shares = append(d.shares, s)
}
