package serve

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
)

const (
	// divideInterval is how often limits are divided anew, if something was reported.
	divideInterval = 200 * time.Millisecond

	// countInterval is how often the demand is told to a fleet: as it is in lumps to what measures it, and short
	// for what its measures are of.
	countInterval = 20 * time.Millisecond

	// limitInterval is how often the rules of a bucket are looked up at most.
	limitInterval = time.Second

	// settleTime is what all data planes have, beyond an interval, to report to a server that
	// knows nothing yet.
	settleTime = 300 * time.Millisecond

	// bucketsAtOnce is how many buckets are worked on before others may have the mutex, and
	// how many actions a message has.
	bucketsAtOnce = 500
)

var errStreams = errors.New("there are as many streams as this server serves")

// quotas are the buckets of a server, with the streams that report them. Nothing in it waits, and
// time is a parameter: [RLQS] has the clock and the messages.
type quotas struct {
	RLQSOptions
	limitOf func(domain string, id map[string]string, now clock.Instant) *quotaLimit
	started clock.Instant

	mu      sync.Mutex // guards what follows, and all of the streams and buckets
	buckets map[string]*quotaBucket
	dirty   []*quotaBucket
	fleet   map[*quotaBucket]struct{} // those whose limit is that of a fleet
	streams int
	shares  int
	swept   clock.Instant
	counted clock.Instant // until when the demand was told to the fleet

	unassigned uint64 // usages that were beyond a bound

	send []*quotaShare // of divide, kept to allocate nothing
}

// quotaBucket is a bucket of a domain, for which there are quotas.
type quotaBucket struct {
	division
	key     string
	domain  string
	id      map[string]string
	limits  *quotaLimit   // nil before the first division
	askedAt clock.Instant // when limits was looked up
	dirty   bool
}

// quotaStream is a stream of reports and assignments.
type quotaStream struct {
	domain string
	peer   string
	wake   chan struct{} // receives when there is something to send

	ended  bool
	shares map[string]*quotaShare // by bucket key
	queue  []*quotaShare          // to send
	gone   []map[string]string    // buckets to abandon
	key    []byte                 // kept to allocate nothing
}

// quotaUsage is what a data plane reports of a bucket.
type quotaUsage struct {
	id       map[string]string
	requests float64 // allowed and denied
	elapsed  time.Duration
}

// quotaAction is what a data plane is to do about a bucket.
type quotaAction struct {
	id         map[string]string
	abandon    bool
	assignment assignment
	ttl        time.Duration
}

func newQuotas(
	options RLQSOptions, now clock.Instant, limitOf func(domain string, id map[string]string, now clock.Instant) *quotaLimit,
) *quotas {
	return &quotas{
		RLQSOptions: options, limitOf: limitOf, started: now, counted: now, swept: now,
		buckets: make(map[string]*quotaBucket), fleet: make(map[*quotaBucket]struct{}),
	}
}

// enter counts a stream, whether or not it ever reports something, until it leaves.
func (q *quotas) enter() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.streams >= q.MaxStreams {
		return errStreams
	}
	q.streams++
	return nil
}

func (q *quotas) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.streams--
}

// newQuotaStream returns a stream of a peer. wake has room for one, and receives when there is something to send.
func newQuotaStream(domain, peer string, wake chan struct{}) *quotaStream {
	return &quotaStream{domain: domain, peer: peer, wake: wake}
}

// close notes that a stream reports nothing any more; clean means that the data plane has ended it.
func (q *quotas) close(s *quotaStream, clean bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, share := range s.shares {
		share.bucket.end(share, clean)
		if !slices.Contains(share.bucket.shares, share) {
			q.shares--
		}
		q.touch(share.bucket)
	}
	s.ended, s.shares, s.queue, s.gone = true, nil, nil, nil
}

// report takes the usages of a message, without those that were refused. They may be changed
// afterwards, but for the ids.
func (q *quotas) report(s *quotaStream, now clock.Instant, usages []quotaUsage, refused uint64) {
	if refused > 0 {
		q.mu.Lock()
		q.unassigned += refused
		q.mu.Unlock()
	}
	for chunk := range slices.Chunk(usages, bucketsAtOnce) {
		q.mu.Lock()
		for i := range chunk {
			q.reportOne(s, now, &chunk[i])
		}
		q.mu.Unlock()
	}
}

func (q *quotas) reportOne(s *quotaStream, now clock.Instant, u *quotaUsage) {
	if s.ended { // while the message was read
		return
	}
	s.key = appendBucketKey(s.key[:0], s.domain, u.id)
	share := s.shares[string(s.key)]
	if share == nil {
		if share = q.join(s, now, u); share == nil {
			q.unassigned++
			return
		}
	}
	b := share.bucket
	b.report(share, now, u.requests, u.elapsed)
	if share.idle >= idleReports {
		q.abandon(share)
	}
	q.touch(b)
}

// join adds a bucket to those of a stream; nil if there is no room for it.
func (q *quotas) join(s *quotaStream, now clock.Instant, u *quotaUsage) *quotaShare {
	if max(len(s.shares)+len(s.gone), len(s.queue)) >= q.MaxStreamBuckets || q.shares >= q.MaxShares {
		return nil // the peer may read nothing of what is sent
	}
	b := q.buckets[string(s.key)]
	if b == nil {
		if len(q.buckets) >= q.MaxBuckets {
			return nil
		}
		b = q.newBucket(s, u)
	}
	if u.elapsed >= time.Second && now < b.heldUntil(q, now) && b.isNew() {
		b.notBefore, b.spread = b.heldUntil(q, now), true
	}
	share := &quotaShare{stream: s, bucket: b}
	before := len(b.shares)
	b.join(share)
	q.shares += len(b.shares) - before
	if s.shares == nil {
		s.shares = make(map[string]*quotaShare)
	}
	s.shares[b.key] = share
	return share
}

func (q *quotas) newBucket(s *quotaStream, u *quotaUsage) *quotaBucket {
	b := &quotaBucket{
		division: division{interval: q.ReportInterval, ttl: q.TTL},
		key:      string(s.key), domain: s.domain, id: u.id,
	}
	q.buckets[b.key] = b
	return b
}

// isNew says whether nobody was assigned anything yet.
func (b *quotaBucket) isNew() bool {
	return !slices.ContainsFunc(b.shares, func(s *quotaShare) bool { return s.assigned })
}

// heldUntil returns until when a bucket waits whose data planes have known it for a while: they may
// have assignments of a server that has ended, and all report within an interval of the start.
func (b *quotaBucket) heldUntil(q *quotas, now clock.Instant) clock.Instant {
	wait := q.ReportInterval + settleTime
	if until := q.started.Add(wait); now < until {
		return until
	}
	return max(b.notBefore, now.Add(wait))
}

// abandon has a data plane forget a bucket for which it has no requests.
func (q *quotas) abandon(share *quotaShare) {
	s, b := share.stream, share.bucket
	b.remove(share)
	q.shares--
	share.ended, share.queued = true, false // it may still stand in the queue
	delete(s.shares, b.key)
	s.gone = append(s.gone, b.id)
	s.notify()
}

// touch has a bucket be divided in the next step.
func (q *quotas) touch(b *quotaBucket) {
	if !b.dirty {
		b.dirty = true
		q.dirty = append(q.dirty, b)
	}
}

// step divides the limits of the buckets of which something was reported, or that are due. It
// says whether there is anything left to do it for.
func (q *quotas) step(now clock.Instant) (busy bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep(now)
	q.countFleet(now)
	for b := range q.fleet {
		if b.limits.now(b.limit) != b.limit {
			q.touch(b)
		}
	}
	work := q.dirty
	q.dirty = nil
	for i, b := range work {
		if i%bucketsAtOnce == bucketsAtOnce-1 {
			q.mu.Unlock() // others wait
			q.mu.Lock()
		}
		q.divide(b, now)
	}
	return q.streams > 0 || len(q.buckets) > 0
}

// sweep touches the buckets that are due, once a second.
func (q *quotas) sweep(now clock.Instant) {
	if now.Sub(q.swept) < time.Second {
		return
	}
	q.swept = now
	for _, b := range q.buckets {
		if b.due <= now {
			q.touch(b)
		}
	}
}

func (q *quotas) divide(b *quotaBucket, now clock.Instant) {
	b.dirty = false
	if b.limits == nil || now.Sub(b.askedAt) >= limitInterval { // what has reported it may be ahead of now
		b.askedAt = now
		b.limits = q.limitOf(b.domain, b.id, now).inPlaceOf(b.limits, now)
		if b.limits.share != nil {
			q.fleet[b] = struct{}{}
		} else {
			delete(q.fleet, b)
		}
	}
	b.limit, b.burst = b.limits.now(b.limit), b.limits.burst
	before := len(b.shares)
	q.send = b.divide(now, q.send[:0])
	q.shares -= before - len(b.shares)
	for _, share := range q.send {
		if !share.queued {
			share.queued = true
			share.stream.queue = append(share.stream.queue, share)
			share.stream.notify()
		}
	}
	clear(q.send)
	switch {
	case len(b.shares) == 0:
		q.drop(b, now)
	case b.due <= now:
		q.touch(b)
	}
}

// drop forgets a bucket that nobody reports.
func (q *quotas) drop(b *quotaBucket, now clock.Instant) {
	b.limits.release(now)
	delete(q.fleet, b)
	delete(q.buckets, b.key)
}

// count tells the fleet what is demanded, and says after what time to do so again, or to divide.
func (q *quotas) count(now clock.Instant) (again time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.countFleet(now)
	if len(q.fleet) > 0 {
		return countInterval
	}
	return divideInterval
}

// countFleet tells the fleet what is demanded of the limits that are for all of it.
func (q *quotas) countFleet(now clock.Instant) {
	passed := now.Sub(q.counted)
	q.counted = now
	for b := range q.fleet {
		b.limits.count(&b.division, now, passed)
	}
}

// take returns what is to be sent on a stream next, at most so many actions as fit in a message.
func (q *quotas) take(s *quotaStream, actions []quotaAction) []quotaAction {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(s.gone), bucketsAtOnce)
	for _, id := range s.gone[:n] {
		actions = append(actions, quotaAction{id: id, abandon: true})
	}
	s.gone = cut(s.gone, n)
	n = min(len(s.queue), bucketsAtOnce-n)
	for _, share := range s.queue[:n] {
		if share.queued { // and was not abandoned meanwhile
			share.queued = false
			actions = append(actions, quotaAction{
				id: share.bucket.id, assignment: share.assignment, ttl: share.expiresAt.Sub(share.assignedAt),
			})
		}
	}
	s.queue = cut(s.queue, n)
	return actions
}

// cut removes the first n of a list, and frees the list when it is empty.
func cut[T any](list []T, n int) []T {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// notify says that there is something to send.
func (s *quotaStream) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// forget notes that a bucket has been dropped of which the data plane reports nothing any more.
func (s *quotaStream) forget(share *quotaShare) {
	share.ended, share.queued = true, false
	if s.shares[share.bucket.key] == share {
		delete(s.shares, share.bucket.key)
	}
}

// appendBucketKey appends a text that is the same for equal buckets of a domain, and no others.
func appendBucketKey(to []byte, domain string, id map[string]string) []byte {
	to = append(strconv.AppendInt(to, int64(len(domain)), 10), ':')
	to = append(to, domain...)
	var few [8]string
	keys := few[:0]
	for key := range id {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := id[key]
		to = append(strconv.AppendInt(to, int64(len(key)), 10), ':')
		to = append(to, key...)
		to = append(strconv.AppendInt(to, int64(len(value)), 10), ':')
		to = append(to, value...)
	}
	return to
}

// releaseFleet gives back what this server has of the limits of the fleet.
func (q *quotas) releaseFleet(now clock.Instant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for b := range q.fleet {
		b.limits.release(now)
	}
	clear(q.fleet)
}
