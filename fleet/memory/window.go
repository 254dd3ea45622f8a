package memory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/fleet"
)

// ring counts the tokens of the buckets of windows of one shape. While instances differ in
// the shape of a window, as during a reload, each counts in a ring of its own shape and
// reads those of others.
type ring struct {
	length  int64           // of a bucket, in microseconds
	buckets int64           // of a window
	counts  map[int64]int64 // by bucket since the epoch
}

// maxRings is how many shapes a window has at once.
const maxRings = 4

func (r *ring) sameShape(o *ring) bool { return r.length == o.length && r.buckets == o.buckets }

// ends is when the last bucket leaves the window.
func (r *ring) ends() int64 {
	return (slices.Max(slices.Collect(maps.Keys(r.counts))) + r.buckets) * r.length
}

// merge adds what another ring of the same shape knows of the buckets that have not left the
// window: of each the greater count. Buckets after the next one tell that the clock has jumped back: all move back so that the
// last is the next one.
func (r *ring) merge(now int64, o *ring) {
	last := slices.Max(slices.Collect(maps.Keys(o.counts)))
	back := max(0, last-(now/r.length+1))
	for bucket, count := range o.counts {
		if bucket -= back; bucket > now/r.length-r.buckets {
			r.counts[bucket] = max(r.counts[bucket], count)
		}
	}
}

func (s *Store) leaseWindow(now int64, r *fleet.Request) fleet.Reply {
	limit := int64(math.Floor(r.Terms.Limit))
	if limit == 0 {
		return fleet.Reply{Retry: fleet.Never, State: r.Seen}
	}
	k := key{windowShape, r.Terms.Key}
	buckets := int64(r.Terms.Buckets)
	w := &window{now: now, limit: limit, own: &ring{
		length:  (r.Terms.Window.Microseconds() + buckets - 1) / buckets,
		buckets: buckets, counts: map[int64]int64{},
	}}
	w.rings = []*ring{w.own}
	if v := s.value(now, k); v != nil {
		w.add(v.windows)
	}
	w.add(parseRings(r.Seen))
	reply := w.lease(r)
	for _, ring := range w.rings {
		maps.DeleteFunc(ring.counts, func(_, count int64) bool { return count == 0 })
	}
	w.rings = slices.DeleteFunc(w.rings, func(r *ring) bool { return len(r.counts) == 0 })
	if len(w.rings) == 0 {
		delete(s.values, k)
		return reply
	}
	reply.State = formatRings(w.rings)
	var ends int64
	for _, ring := range w.rings {
		ends = max(ends, ring.ends())
	}
	if v := s.value(now, k); v == nil || formatRings(v.windows) != reply.State {
		s.put(now, k, &value{windows: w.rings}, ends-now, r.Keep)
	}
	return reply
}

// window is what a request sees of a limit.
type window struct {
	now   int64
	limit int64
	own   *ring // of the shape of the request
	rings []*ring
}

// add merges rings that were stored or seen.
func (w *window) add(rings []*ring) {
	for _, o := range rings {
		i := slices.IndexFunc(w.rings, o.sameShape)
		if i < 0 && len(w.rings) == maxRings {
			continue
		}
		if i < 0 {
			i = len(w.rings)
			w.rings = append(w.rings, &ring{length: o.length, buckets: o.buckets, counts: map[int64]int64{}})
		}
		w.rings[i].merge(w.now, o)
	}
}

func (w *window) lease(r *fleet.Request) fleet.Reply {
	length := w.own.length
	present := w.now / length
	ahead := min(r.Ahead.Microseconds(), length)
	if bucket := r.BackTo / length; r.Back > 0 && r.BackTo%length == 0 && w.own.counts[bucket] > 0 {
		w.own.counts[bucket] = max(0, w.own.counts[bucket]-r.Back)
	}
	if r.Owed > 0 {
		w.own.counts[present] += r.Owed
	}
	for i, owed := range r.OwedBefore {
		if bucket := present - 1 - int64(i); owed > 0 && bucket > present-w.own.buckets {
			w.own.counts[bucket] += owed
		}
	}
	bucket, used := present, max(w.used(present), w.used(present+1))
	var reply fleet.Reply
	if begins := (present + 1) * length; begins-w.now <= ahead {
		bucket, used = present+1, w.used(present+1)
		reply.Delay = micros(begins - w.now)
	}
	if granted := min(r.Want, w.limit-used); granted > 0 {
		w.own.counts[bucket] += granted
		reply.Granted = granted
		reply.Bucket = bucket * length
		reply.Valid = micros((bucket+1)*length - w.now)
		return reply
	}
	reply.Delay = 0
	if r.Want > 0 {
		need := min(r.Want, max(1, r.Quantum), w.limit)
		reply.Retry = micros(w.enoughAt(bucket, need)*length - ahead - w.now)
	}
	return reply
}

// used is how many tokens count in the window whose last bucket is the given one.
func (w *window) used(last int64) (tokens int64) {
	from, to := (last-w.own.buckets+1)*w.own.length, (last+1)*w.own.length
	for _, ring := range w.rings {
		for bucket, count := range ring.counts {
			if begins := bucket * ring.length; begins < to && begins+ring.length > from {
				tokens += count
			}
		}
	}
	return tokens
}

// enoughAt returns the first bucket after the given one whose window has so many tokens left, if
// nobody else comes.
func (w *window) enoughAt(bucket, need int64) int64 {
	type leave struct{ at, count int64 } // the first bucket in whose window they do not count
	var leaves []leave
	total := int64(0)
	for _, ring := range w.rings {
		for b, count := range ring.counts {
			end := (b + 1) * ring.length
			at := (end+w.own.length-1)/w.own.length + w.own.buckets - 1
			if at > bucket && count > 0 {
				leaves = append(leaves, leave{at, count})
				total += count
			}
		}
	}
	slices.SortFunc(leaves, func(a, b leave) int { return cmp.Compare(a.at, b.at) })
	for _, l := range leaves {
		if w.limit-total >= need {
			break
		}
		total -= l.count
		bucket = l.at
	}
	return bucket
}

// A ring is written as <length>x<buckets>:<last bucket>:<its count>,<the count before>,…

func formatRings(rings []*ring) string {
	var texts []string
	for _, r := range rings {
		numbers := slices.Sorted(maps.Keys(r.counts))
		first, last := numbers[0], numbers[len(numbers)-1]
		var counts []string
		for bucket := last; bucket >= first; bucket-- {
			counts = append(counts, strconv.FormatInt(r.counts[bucket], 10))
		}
		texts = append(texts, fmt.Sprintf("%dx%d:%d:%s", r.length, r.buckets, last, strings.Join(counts, ",")))
	}
	return strings.Join(texts, ";")
}

var ringFormat = regexp.MustCompile(`(\d+)x(\d+):(\d+):([\d,]+)`)

func parseRings(text string) (rings []*ring) {
	for _, match := range ringFormat.FindAllStringSubmatch(text, -1) {
		r := &ring{length: number(match[1]), buckets: number(match[2]), counts: map[int64]int64{}}
		if r.length == 0 || r.buckets == 0 {
			continue
		}
		last := number(match[3])
		for i, count := range strings.Split(match[4], ",") {
			r.counts[last-int64(i)] = number(count)
		}
		rings = append(rings, r)
	}
	return rings
}

// number reads a number that a store has written.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
