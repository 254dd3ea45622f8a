package flow

import (
	"fmt"
	"sync/atomic"

	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/internal/warnonce"
)

// warning is the warning of a version of a rule that has one.
type warning struct {
	rule *Rule
	from int64 // tokens of the window
	warn func(string)
}

// newWarning returns the warning of a rule, nil if it has none.
func newWarning(r *Rule, warn func(string)) *warning {
	if r.WarnAt == 0 || warn == nil {
		return nil
	}
	return &warning{rule: r, from: settings.WarnFrom(r.WarnAt, r.Limit), warn: warn}
}

// tell warns of a window of which so many tokens are used, if those are as many as the rule says and
// nobody has warned of it before.
func (w *warning) tell(used, window int64, told *warnonce.Latest) {
	if used < w.from || !told.First(warnonce.Window{Length: w.rule.Calendar.Length(w.rule.Window), Number: window}) {
		return
	}
	w.warn(fmt.Sprintf("%d of %v tokens of the window are used, of which the rule says to warn (warnAt %v)",
		used, w.rule.Limit, w.rule.WarnAt))
}

// fleetWarning is the warning of a limit of the fleet, of the version that is in force, and of which
// windows it has told.
type fleetWarning struct {
	present atomic.Pointer[warning]
	told    warnonce.Latest
}

// change goes over to a version.
func (w *fleetWarning) change(v *fleetVersion) { w.present.Store(v.warning) }

// note warns if so much is used as the rule says, by what the backend has told.
func (w *fleetWarning) note(used func() (tokens, window int64, known bool)) {
	present := w.present.Load()
	if present == nil {
		return
	}
	if tokens, window, known := used(); known {
		present.tell(tokens, window, &w.told)
	}
}
