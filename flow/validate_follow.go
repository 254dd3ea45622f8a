package flow

import (
	"slices"

	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// validateFollow judges how the limit follows a signal.
func (r *Rule) validateFollow(f *rule.Faults) {
	w := &r.Follow
	if *w == (Follow{}) {
		return
	}
	switch known := w.validateSignal(f); {
	case !rule.Within(w.From, 0, maxSignal):
		f.Add("follow.from", "is %v: must be from 0 to %v", w.From, maxSignal)
	case !rule.Within(w.To, 0, maxSignal):
		f.Add("follow.to", "is %v: must be from 0 to %v", w.To, maxSignal)
	case w.To == w.From:
		f.Add("follow.to", "is %v, as from is: must differ, so that the limit falls between the two", w.To)
	case known && w.To < w.From:
		f.Add("follow.to", "is %v: must be greater than from, %v: the limit falls while the signal rises", w.To, w.From)
	case w.isShare() && w.To > 1:
		f.Add("follow.to", "is %v: must be at most 1, the greatest share that signal %q shows", w.To, w.Signal)
	}
	switch {
	case w.Least == 0:
		f.Add("follow.least", "is missing or 0: write how many tokens may still pass in a window when the signal is at to")
	case !rule.Within(w.Least, 0, MaxLimit):
		f.Add("follow.least", "is %v: must be greater than 0 and less than the limit", w.Least)
	case w.Least >= r.Limit:
		f.Add("follow.least", "is %v: must be less than the limit, %v; or remove follow", w.Least, r.Limit)
	}
}

// validateSignal judges the name of the signal. It says whether it is one of package
// rule rather than one that the program has itself.
func (w *Follow) validateSignal(f *rule.Faults) (known bool) {
	all := settings.KnownSignals()
	if slices.Contains(all, w.Signal) {
		return true
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = string(s)
	}
	if w.Signal == "" {
		f.Add("follow.signal", "is missing: write which signal the limit follows, such as %q", rule.SignalMemory)
	} else if near := rule.Nearest(string(w.Signal), names); near != "" {
		f.Add("follow.signal", "is %s: did you mean %q?", rule.Quote(string(w.Signal)), near)
	}
	return false
}

// isShare says whether the signal shows shares, which are from 0 to 1.
func (w *Follow) isShare() bool {
	switch w.Signal {
	case rule.SignalCPU, rule.SignalMemory, rule.SignalGC, rule.SignalThrottled:
		return true
	}
	return false
}
