package shed

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/splitmix"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/rule"
)

// Rotation is the time in which the position of a caller goes once through all positions.
const Rotation = time.Minute

const (
	rotationStep = Rotation / positions

	// Moving the threshold makes earlier arrivals count less by this factor.
	retained = 0.75

	// The rates of arrivals are means of about that time.
	rateTime = 10 * time.Second
)

// Threshold divides calls into those that are to pass and those that are to be refused.
// Make one with [New]. It begins inactive: then all calls are to pass, and arrivals are
// not counted.
//
// Load, Standing, Refuse and Refused are safe for concurrent use with all methods, and
// allocate nothing. The other methods must be called by one goroutine at a time.
type Threshold struct {
	word   atomic.Uint64 // a State: all that calls read, beside what never changes
	hasher *valuehash.Hasher
	seed   uint64
	_      [40]byte // calls write what follows

	arrivals [Levels][buckets]atomic.Uint32 // by level and bucket, of calls that Standing saw; later ones count more
	seen     [Levels]atomic.Uint64          // refused calls that Standing saw
	unseen   [Levels]atomic.Uint64          // refused calls that it did not see

	// What follows is for whoever moves the threshold.
	share    float64
	rotated  clock.Instant   // when the positions were rotated last
	unsorted [Levels]float64 // arrivals that Standing did not see; later ones count more
	settled  [Levels]uint64  // refusals that unsorted has
	kept     [Levels]float64 // arrivals of a level that an earlier move has counted
	rates    [Levels]float64 // arrivals of a level in a second, of late
	started  clock.Instant
	moved    clock.Instant
}

// New returns an inactive threshold. Callers' positions follow from the seed; if that is
// 0, they are random.
func New(seed uint64) *Threshold {
	hasher := valuehash.New(seed)
	if seed == 0 {
		seed = maphash.String(maphash.MakeSeed(), "")
	}
	return &Threshold{hasher: hasher, seed: splitmix.Mix(seed), share: 1}
}

// State is a threshold at one moment. The zero State is inactive.
type State uint64

// A state has a rank, the rotation of positions, and the lowest level of which calls are
// to pass.
const (
	rotationShift = 16
	edgeShift     = 24
	activeBit     = 1 << 63
)

func makeState(rank, rotation uint32, edge int) State {
	return activeBit | State(edge)<<edgeShift | State(rotation)<<rotationShift | State(rank)
}

// Active says whether arrivals are counted and calls may have to be refused.
func (s State) Active() bool { return s != 0 }

func (s State) rank() uint32     { return uint32(s) & 0xFFFF }
func (s State) rotation() uint32 { return uint32(s>>rotationShift) & positionMask }
func (s State) edge() uint32     { return uint32(s>>edgeShift) & 7 }

// Standing is where a call stands to the threshold.
type Standing uint8

// The standings, the best first.
const (
	// Above: the call is to pass, and there are less important ones that are, too.
	Above Standing = iota
	// Edge: the call is to pass, and is of the lowest priority of which calls are.
	Edge
	// Below: the call is to be refused.
	Below
)

// Load returns the present state.
func (t *Threshold) Load() State { return State(t.word.Load()) }

// Standing counts the arrival of a call, by an active state, and returns where it stands.
// The nonce should differ from call to call.
func (t *Threshold) Standing(s State, c *rule.Call, nonce uint64) Standing {
	standing, place := t.Find(s, c, nonce)
	t.Count(place)
	return standing
}

// Place is where the arrival of a call is counted.
type Place struct{ level, bucket uint32 }

// Find returns where a call stands, by an active state, and does not count its arrival.
func (t *Threshold) Find(s State, c *rule.Call, nonce uint64) (Standing, Place) {
	bucket, random := bucketOf(t.hasher, c.Attribute, t.seed^nonce)
	place := Place{uint32(c.Priority().Level()), bucket}
	if !c.Attribute.IsSet() {
		place.bucket = unknownCallers
	}
	position := (bucket + s.rotation()) & positionMask
	switch rank := place.level<<levelShift | position<<randomBits | random; {
	case rank < s.rank():
		return Below, place
	case place.level <= s.edge():
		return Edge, place
	}
	return Above, place
}

// Count counts the arrival of a call that Find has found.
func (t *Threshold) Count(p Place) { t.arrivals[p.level][p.bucket].Add(1) }

// Refuse counts a refused call. Seen says whether Standing was asked about it.
func (t *Threshold) Refuse(p rule.Priority, seen bool) {
	if seen {
		t.seen[p.Level()].Add(1)
	} else {
		t.unseen[p.Level()].Add(1)
	}
}

// Refused returns how many calls of a priority were refused since the beginning.
func (t *Threshold) Refused(p rule.Priority) uint64 {
	level := p.Level()
	return t.seen[level].Load() + t.unseen[level].Load()
}

// Totals returns how many calls were refused since the beginning, and how many of these
// Standing did not see.
func (t *Threshold) Totals() (refused, unseen uint64) {
	for level := range Levels {
		unseen += t.unseen[level].Load()
		refused += t.seen[level].Load()
	}
	return refused + unseen, unseen
}

// Share returns the share of arrivals that are to pass, 1 if all of them are.
func (t *Threshold) Share() float64 { return t.share }

// Start makes the threshold active: arrivals are counted, and all of them are to pass.
// It does nothing if it is active.
func (t *Threshold) Start(now clock.Instant) {
	if t.Load().Active() {
		return
	}
	t.rotated, t.started, t.moved = now, now, now
	for level := range t.settled {
		t.settled[level] = t.unseen[level].Load()
	}
	t.word.Store(uint64(makeState(0, 0, 0)))
}

// Stop makes the threshold inactive.
func (t *Threshold) Stop() {
	t.word.Store(0)
	t.share = 1
	for level := range Levels {
		t.unsorted[level], t.kept[level], t.rates[level] = 0, 0, 0
		for bucket := range t.arrivals[level] {
			t.arrivals[level][bucket].Store(0)
		}
	}
}

// Move moves an active threshold to where a share of the arrivals is at or above it, as
// far as the arrivals of the last moves tell; priorities above all that came are to pass.
// A share of 1 or more lets all calls pass.
func (t *Threshold) Move(now clock.Instant, share float64) { t.move(now, share, true) }

// MoveBetween is Move for a threshold before a limit, which refuses what is too many of those
// that are to pass. It divides no calls at random: those of one caller are at or above the
// threshold or they are not, and those of one priority whose callers are not known, too.
func (t *Threshold) MoveBetween(now clock.Instant, share float64) { t.move(now, share, false) }

func (t *Threshold) move(now clock.Instant, share float64, atRandom bool) {
	s := t.Load()
	if !s.Active() {
		return
	}
	t.share = max(0, min(share, 1))
	rotation := s.rotation()
	if since := now.Sub(t.rotated); since >= rotationStep {
		rotation = (rotation + uint32(since/rotationStep%positions)) & positionMask
		t.rotated = t.rotated.Add(since / rotationStep * rotationStep)
	}
	var h histogram
	t.collect(&h)
	t.measure(now, &h)
	rank := h.rankOf(t.share, rotation, atRandom)
	edge := max(int(rank>>levelShift), h.lowest())
	t.word.Store(uint64(makeState(rank, rotation, min(edge, Levels-1))))
	t.age()
}

// RateAbove returns how many calls come in a second that are more important than the lowest
// priority of which calls are to pass.
func (t *Threshold) RateAbove() (rate float64) {
	s := t.Load()
	if !s.Active() {
		return 0
	}
	for level := int(s.edge()) + 1; level < Levels; level++ {
		rate += t.rates[level]
	}
	return rate
}

// measure counts what has arrived since the last move.
func (t *Threshold) measure(now clock.Instant, h *histogram) {
	since := now.Sub(t.moved)
	if since <= 0 {
		return
	}
	t.moved = now
	weight := min(1, float64(since)/float64(min(max(since, now.Sub(t.started)), rateTime)))
	for level := range Levels {
		came := max(0, h.total[level]-t.kept[level]) / since.Seconds()
		t.rates[level] += weight * (came - t.rates[level])
		t.kept[level] = h.total[level]
	}
}

// collect fills a histogram with what has arrived.
func (t *Threshold) collect(h *histogram) {
	for level := range Levels {
		unseen := t.unseen[level].Load()
		t.unsorted[level] += float64(unseen - t.settled[level])
		t.settled[level] = unseen
		for bucket := range t.arrivals[level] {
			n := float64(t.arrivals[level][bucket].Load())
			h.buckets[level][bucket] = n
			h.sorted[level] += n
		}
		h.total[level] = h.sorted[level] + t.unsorted[level]
		h.all += h.total[level]
	}
}

// age makes what has arrived count less.
func (t *Threshold) age() {
	for level := range Levels {
		forgotten := t.unsorted[level]
		t.unsorted[level] = math.Floor(t.unsorted[level] * retained)
		forgotten -= t.unsorted[level]
		for bucket := range t.arrivals[level] {
			a := &t.arrivals[level][bucket]
			if n := a.Load(); n > 0 {
				less := n - uint32(float64(n)*retained)
				a.Add(-less)
				forgotten += float64(less)
			}
		}
		t.kept[level] -= forgotten
	}
}
