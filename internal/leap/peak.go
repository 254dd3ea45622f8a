package leap

import "sync/atomic"

// peak is the highest value in the open second, in one word with the tag of the second:
//
//	tag, 12 bits | value, 52 bits
//
// Values of 51 bits, 26 days in nanoseconds, are exact. Larger ones lose their last
// 12 bits, 4 µs.
type peak struct{ word atomic.Uint64 }

const (
	maxPeak    = 1<<tagShift - 1
	largePeak  = 1 << (tagShift - 1) // the bit that larger values have
	lostOfPeak = 12
)

// raise makes the peak at least value if the word is open for the tag. Most calls cost one
// load.
func (p *peak) raise(tag, value uint64) {
	if value >= largePeak {
		value = largePeak | value>>lostOfPeak
	}
	for {
		old := p.word.Load()
		if old>>tagShift != tag || old&maxPeak >= value || p.word.CompareAndSwap(old, tag<<tagShift|value) {
			return
		}
	}
}

// second returns the peak of the open second.
func (p *peak) second() uint64 {
	value := p.word.Load() & maxPeak
	if value >= largePeak {
		return value &^ largePeak << lostOfPeak
	}
	return value
}

// reopen starts the peak over for another second.
func (p *peak) reopen(tag uint64) { p.word.Store(tag << tagShift) }
