// Package warnonce says which values a limiter has to warn of: each once in a window.
package warnonce

import "sync/atomic"

const (
	// MaxKeys is how many keys of a window are told apart.
	MaxKeys = 1024

	slots = 2 * MaxKeys
)

// Windows remembers the keys of the present window. The zero value has seen none. It may be used
// concurrently; First takes no lock, and allocates only for the first key of a window.
type Windows struct{ present atomic.Pointer[window] }

// window is a table of keys, which only grows: from the slot of its low bits on, a key is in the first
// that is its own or free.
type window struct {
	number int64
	count  atomic.Int64
	keys   [slots]atomic.Uint64 // 0: free
}

// First says whether the key, a hash, was not seen yet in a window, whose numbers grow. With full it was the
// first key for which there was no space, of the window: of those that follow none is first.
func (w *Windows) First(number int64, key uint64) (first, full bool) {
	present := w.at(number)
	if present == nil {
		return false, false
	}
	key |= 1 << 63 // none is 0; keys that differ only there are one
	for i := range uint64(slots) {
		slot := &present.keys[(key+i)%slots]
		for {
			switch seen := slot.Load(); {
			case seen == key:
				return false, false
			case seen != 0:
			case present.count.Load() >= MaxKeys:
				return false, present.count.Add(1) == MaxKeys+1
			case slot.CompareAndSwap(0, key):
				present.count.Add(1)
				return true, false
			default:
				continue // another goroutine has taken the slot, perhaps for this key
			}
			break
		}
	}
	return false, false
}

// at returns the table of a window; nil if a later one has begun.
func (w *Windows) at(number int64) *window {
	for {
		present := w.present.Load()
		switch {
		case present != nil && present.number == number:
			return present
		case present != nil && present.number > number:
			return nil
		}
		if next := (&window{number: number}); w.present.CompareAndSwap(present, next) {
			return next
		}
	}
}
