package hotparam

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/rule"
)

const (
	hottestSize   = 64 // values that a summary counts
	hottestShown  = 10 // values that status shows
	nameLength    = 64 // bytes of a value that are kept
	summaryPeriod = time.Minute

	// So many calls of a minute are counted each, then as many of every fourth call, of every
	// sixteenth, and so on.
	countedEach   = 2048
	sampleStep    = 2 // bits
	maxSampleBits = 10
)

// hottest counts the calls of the values that are called most, of all resources of a
// rule. The counts are estimates: a value that has a place counts fully, one that takes
// the place of another begins with its count, so that no hot value is overlooked (the
// space-saving algorithm of Metwally, Agrawal and El Abbadi). There is one summary for
// this minute of the clock and one for the minute before.
//
// Counting never makes a call wait: a call that finds another one counting is not counted.
type hottest struct {
	sampleBits atomic.Uint32 // one in 2^sampleBits calls is counted
	_          [60]byte      // keeps what is written often off the cache line that every call reads

	mu sync.Mutex
	// The mutex guards the rest.
	minute  int64
	calls   int // that were counted since sampleBits changed
	present summary
	before  summary
}

// summary is the values of a minute.
type summary struct {
	keys    [hottestSize]uint64
	totals  [hottestSize]uint64 // calls, with those of the values that had the place before
	entries [hottestSize]hotValue
	size    int
}

// hotValue is one of them.
type hotValue struct {
	of      *resourceState // whose value it is
	passed  uint64
	refused uint64
	length  int
	isCut   bool
	name    [nameLength]byte
}

// count counts a call of a value, whose key is the same for the same value and resource.
func (h *hottest) count(of *resourceState, now clock.Instant, key uint64, value rule.Attribute, passes bool) {
	weight, ok := h.begin(now, key)
	if !ok {
		return
	}
	defer h.mu.Unlock()
	place, isNew := h.present.place(key)
	if isNew {
		h.present.entries[place] = hotValue{of: of}
		h.present.entries[place].setName(value)
	}
	h.present.add(place, weight, passes)
}

// countNamed is count for a call whose value is not there any more, but its name.
func (h *hottest) countNamed(now clock.Instant, key uint64, name *hotValue, passes bool) {
	weight, ok := h.begin(now, key)
	if !ok {
		return
	}
	defer h.mu.Unlock()
	place, isNew := h.present.place(key)
	if isNew {
		h.present.entries[place] = *name
	}
	h.present.add(place, weight, passes)
}

// leavesOut says that a call is not counted, as most are not once there are many.
func (h *hottest) leavesOut(now clock.Instant, key uint64) bool {
	return (uint64(now)^key)*prime1>>(64-h.sampleBits.Load()) != 0
}

// begin locks the counts, unless the call is not counted, and returns for how many it stands.
func (h *hottest) begin(now clock.Instant, key uint64) (calls uint64, ok bool) {
	bits := h.sampleBits.Load()
	if h.leavesOut(now, key) || !h.mu.TryLock() {
		return 0, false
	}
	h.rotate(now)
	bits = min(bits, h.sampleBits.Load())
	if h.calls++; h.calls >= countedEach && bits < maxSampleBits {
		h.calls = 0
		h.sampleBits.Store(bits + sampleStep)
	}
	return 1 << bits, true
}

// add counts calls of the value in a place.
func (s *summary) add(place int, calls uint64, passes bool) {
	s.totals[place] += calls
	if entry := &s.entries[place]; passes {
		entry.passed += calls
	} else {
		entry.refused += calls
	}
}

// rotate begins a new minute if it is time.
func (h *hottest) rotate(now clock.Instant) {
	minute := int64(now) / int64(summaryPeriod)
	if minute <= h.minute {
		return
	}
	if minute == h.minute+1 {
		h.before = h.present
	} else {
		h.before.size = 0
	}
	h.minute, h.calls, h.present.size = minute, 0, 0
	h.sampleBits.Store(0)
}

// place returns the place of a value. If there is none left, that is the place of the
// value with the fewest calls, whose count it takes over. isNew: the caller sets the entry.
func (s *summary) place(key uint64) (place int, isNew bool) {
	for i := range s.size {
		if s.keys[i] == key {
			return i, false
		}
	}
	place = s.size
	if s.size == hottestSize {
		place = s.coldest()
	} else {
		s.totals[place] = 0
		s.size++
	}
	s.keys[place] = key
	return place, true
}

func (s *summary) coldest() int {
	coldest := 0
	for i := 1; i < s.size; i++ {
		if s.totals[i] < s.totals[coldest] {
			coldest = i
		}
	}
	return coldest
}

// missingName stands for the calls without the attribute.
const missingName = "(missing)"

// setName keeps the beginning of a value, in memory of its own.
func (v *hotValue) setName(value rule.Attribute) {
	parts := value.Parts()
	switch {
	case !value.IsSet():
		v.write(missingName)
	case len(parts) == 0:
		v.writePart(value)
	}
	for i, part := range parts {
		if i > 0 {
			v.write("/")
		}
		v.writePart(part)
	}
}

func (v *hotValue) writePart(part rule.Attribute) {
	if text, ok := part.Text(); ok {
		v.write(text)
	} else if number, ok := part.Number(); ok {
		var digits [20]byte
		v.write(string(strconv.AppendInt(digits[:0], number, 10)))
	} else if truth, ok := part.Boolean(); ok {
		v.write(strconv.FormatBool(truth))
	}
}

func (v *hotValue) write(text string) {
	n := copy(v.name[v.length:], text)
	v.length += n
	v.isCut = v.isCut || n < len(text)
}

// shown returns the value as status shows it: in one line, and with a mark if it was cut.
func (v *hotValue) shown() string {
	text := strings.ToValidUTF8(string(v.name[:v.length]), "�")
	text = strings.Map(func(r rune) rune {
		if document.IsInvisible(r) {
			return '�'
		}
		return r
	}, text)
	if v.isCut {
		text = strings.TrimRight(text, "�") + "…"
	}
	return text
}

// of returns the hottest values of a resource in this minute and the one before.
func (h *hottest) of(state *resourceState, now clock.Instant, isMasked bool) []rule.ValueStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rotate(now)
	var found []rule.ValueStatus
	places := make(map[uint64]int)
	for _, s := range []*summary{&h.present, &h.before} {
		for i := range s.size {
			entry := &s.entries[i]
			if entry.of != state {
				continue
			}
			place, known := places[s.keys[i]]
			if !known {
				place = len(found)
				places[s.keys[i]] = place
				found = append(found, rule.ValueStatus{Value: shownValue(entry, s.keys[i], isMasked)})
			}
			found[place].Passed += entry.passed
			found[place].Refused += entry.refused
		}
	}
	slices.SortStableFunc(found, func(a, b rule.ValueStatus) int {
		return cmp.Or(cmp.Compare(b.Passed+b.Refused, a.Passed+a.Refused), cmp.Compare(a.Value, b.Value))
	})
	return found[:min(len(found), hottestShown)]
}

func shownValue(v *hotValue, key uint64, isMasked bool) string {
	if isMasked {
		return fmt.Sprintf("#%016x", valuehash.Scramble(key^v.of.salt))
	}
	return v.shown()
}
