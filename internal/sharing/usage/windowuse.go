package usage

import (
	"github.com/penstock-go/penstock/clock"
)

// WindowUse is how many tokens of a window all instances have used, as the store told last. The mutex
// of the member guards it.
type WindowUse struct {
	Tokens, Number int64
	IsKnown        bool
	Until          clock.Instant // as long as it may be that of the present window
}

// At returns what the fleet has used at an instant, unless the window is over.
func (w *WindowUse) At(now clock.Instant) (tokens int64, known bool) {
	if !w.IsKnown || now >= w.Until {
		return 0, false
	}
	return w.Tokens, true
}
