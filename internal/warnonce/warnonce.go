// Package warnonce says of which windows, and which values in them, a limiter has to warn: of each once.
package warnonce

import (
	"sync/atomic"
	"time"
)

const (
	// MaxKeys is how many keys of a window are told apart.
	MaxKeys = 1024

	slots = 2 * MaxKeys
)

// Window is one of the windows of a limit: those of one length have numbers that grow. Another length
// is that of a changed rule, whose windows are others.
type Window struct {
	Length time.Duration
	Number int64
}

// isOver says whether a later window has begun.
func (w Window) isOver(present Window) bool {
	return w.Length == present.Length && w.Number < present.Number
}

// Latest remembers the last window of which was warned. The zero value has seen none. It may be used
// concurrently; First takes no lock, and allocates only when a window is the first.
type Latest struct{ window atomic.Pointer[Window] }

// First says whether the window was not seen yet, nor a later one.
func (l *Latest) First(w Window) bool {
	for {
		present := l.window.Load()
		if present != nil && (*present == w || w.isOver(*present)) {
			return false
		}
		if next := w; l.window.CompareAndSwap(present, &next) {
			return true
		}
	}
}

// Windows remembers the keys of the present window. The zero value has seen none. It may be used
// concurrently; First takes no lock, and allocates only for the first key of a window.
type Windows struct{ present atomic.Pointer[window] }

// window is a table of keys, which only grows: from the slot of its low bits on, a key is in the first
// that is its own or free.
type window struct {
	of    Window
	count atomic.Int64
	keys  [slots]atomic.Uint64 // 0: free
}

// First says whether the key, a hash, was not seen yet in a window. With full it was the first key for which there was no space, of the window: of those that follow none is first.
func (w *Windows) First(of Window, key uint64) (first, full bool) {
	present := w.at(of)
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
func (w *Windows) at(of Window) *window {
	for {
		present := w.present.Load()
		switch {
		case present != nil && present.of == of:
			return present
		case present != nil && of.isOver(present.of):
			return nil
		}
		if next := (&window{of: of}); w.present.CompareAndSwap(present, next) {
			return next
		}
	}
}
