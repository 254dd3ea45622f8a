package table

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/openwindow"
)

// WindowTerms are what all values of a table of [Windows] have in common in one version of
// a rule. They never change.
type WindowTerms struct {
	version uint64
	bucket  int64 // nanoseconds

	// Of fixed windows, which count in every tenth bucket only: all that was counted leaves at once.
	fixed   bool
	windows *openwindow.Windows // of a calendar; nil if they are all as long
}

// windowBuckets is how many buckets a window has.
const windowBuckets = 10

// CompileWindow compiles a window; a bucket is a tenth of it, in whole nanoseconds, at least
// one. Buckets are numbered modulo 2⁴⁴: for windows of 1 ms or more that is 55 years. The
// version is higher than that of all earlier terms of the same table.
func CompileWindow(version uint64, window time.Duration) *WindowTerms {
	return &WindowTerms{version: version, bucket: max(1, int64(window/windowBuckets))}
}

// CompileFixedWindow compiles a fixed window, which begins at multiples of its length since the
// epoch.
func CompileFixedWindow(version uint64, window time.Duration) *WindowTerms {
	t := CompileWindow(version, window)
	t.fixed = true
	return t
}

// CompileCalendar compiles windows of a calendar.
func CompileCalendar(version uint64, windows *openwindow.Windows) *WindowTerms {
	t := CompileFixedWindow(version, windows.Calendar().Length())
	t.windows = windows
	return t
}

// Calendar returns the windows of a calendar; nil if there are none.
func (t *WindowTerms) Calendar() *openwindow.Windows { return t.windows }

// number returns the number of the bucket that is open at an instant.
func (t *WindowTerms) number(now clock.Instant) int64 {
	if t.fixed {
		return t.fixedNumber(now)
	}
	return int64(max(0, now)) / t.bucket
}

func (t *WindowTerms) fixedNumber(now clock.Instant) int64 {
	if t.windows != nil {
		return t.windows.Number(now) * windowBuckets
	}
	return int64(max(0, now)) / (t.bucket * windowBuckets) * windowBuckets
}

// length returns how long windows are, those of a calendar at most.
func (t *WindowTerms) length() int64 { return t.bucket * windowBuckets }

// begin returns when a bucket begins; of fixed windows, one that counts.
func (t *WindowTerms) begin(number int64) clock.Instant {
	if t.windows != nil {
		return t.windows.Start(number / windowBuckets)
	}
	return clock.Instant(number * t.bucket)
}

// next returns the number of the bucket that comes after one.
func (t *WindowTerms) next(number int64) int64 {
	if t.fixed {
		return number + windowBuckets
	}
	return number + 1
}

// countsLike says whether both terms have the same buckets.
func (t *WindowTerms) countsLike(other *WindowTerms) bool {
	if t.windows == nil || other.windows == nil {
		return t.bucket == other.bucket && t.fixed == other.fixed && t.windows == other.windows
	}
	return t.windows.Calendar().Equal(other.windows.Calendar())
}

// Windows is a table of sliding windows: ten buckets per value, each a tenth of the window
// long and aligned to instant 0. A call passes if the present bucket and the nine before
// it count no more than the limit with it.
//
// A value has 48 bytes: a word, which is the tag, 20 bits, and the number of its newest
// bucket, 44 bits; and ten counters. The mutex of a stripe of groups guards all that is in
// them. A call on a value that has its slot in the first of its two groups locks that; all
// other calls lock both, in the order of their stripes. So a value never has two slots. A
// slot is given to another value only when all ten buckets have left the window. Cells of
// the sketch have a mutex each.
//
// A change of the window converts the groups of a stripe when the first call locks it
// afterwards, and those of all others in Activate.
type Windows struct {
	geometry
	words   []windowGroup
	counts  []windowCounts
	stripes []windowStripe
	cells   windowSketch
	sources Used
	terms   atomic.Pointer[WindowTerms] // of calls that are not stale; nil: not in use yet, or closed

	// Guarded by all stripes:
	present   *WindowTerms  // of the cells
	changedAt clock.Instant // when they came into force
	closedAt  clock.Instant // when another table took over; 0: none has

	change    sync.Mutex              // held by who changes the terms
	converted *WindowTerms            // the last to which all slots were brought; guarded by change
	previous  atomic.Pointer[Windows] // the table that this one takes over from
	until     atomic.Int64            // of a closed table: when all windows are over
	successor *Windows
	maxValues int
}

type (
	windowGroup  [groupSize]uint64
	windowCounts [windowBuckets]uint32
)

// windowStripe is the lock of some of the groups.
type windowStripe struct {
	sync.Mutex
	terms       *WindowTerms // of what is in the groups
	forgotten   uint64
	withoutSlot uint64
}

// window is the state of a value: its newest bucket, and what the ten buckets up to it
// count.
type window struct {
	newest int64
	counts windowCounts
}

const (
	windowTagBits  = 20
	windowTagMask  = 1<<windowTagBits - 1
	numberBits     = 64 - windowTagBits
	numberMask     = 1<<numberBits - 1
	stripeOfGroups = 16 // groups of a stripe
	bucketBits     = 4  // of a place
)

// roll moves the newest bucket on and empties those that come into the window.
func (w *window) roll(to int64) {
	if to-w.newest >= windowBuckets {
		w.counts, w.newest = windowCounts{}, to
		return
	}
	for ; w.newest < to; w.newest++ {
		w.counts[(w.newest+1)%windowBuckets] = 0
	}
}

// sum returns what the window counts.
func (w *window) sum() (sum int64) {
	for _, n := range w.counts {
		sum += int64(n)
	}
	return sum
}

// add counts tokens in a bucket of the window, or takes some off.
func (w *window) add(number, tokens int64) {
	count := &w.counts[number%windowBuckets]
	*count = uint32(min(math.MaxUint32, max(0, int64(*count)+tokens)))
}

// NewWindows makes a table that holds at least maxValues values at a time, as long as they
// spread evenly. It takes about 90 bytes a value.
func NewWindows(maxValues int, terms *WindowTerms) *Windows {
	w := newWindows(maxValues)
	w.terms.Store(terms)
	w.present, w.converted = terms, terms
	for i := range w.stripes {
		w.stripes[i].terms = terms
	}
	return w
}

func newWindows(maxValues int) *Windows {
	g := newGeometry(maxValues)
	return &Windows{
		geometry:  g,
		words:     make([]windowGroup, g.groups),
		counts:    make([]windowCounts, g.slots()),
		stripes:   make([]windowStripe, (g.groups+stripeOfGroups-1)/stripeOfGroups),
		cells:     make(windowSketch, g.sketchSize()),
		sources:   newUsed(&g),
		maxValues: maxValues,
	}
}
