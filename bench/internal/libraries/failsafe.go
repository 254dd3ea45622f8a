package libraries

import (
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/penstock-go/penstock/rule"
)

// failsafe is the adaptive limiter of failsafe-go, with its defaults.
type failsafe struct {
	limiter adaptivelimiter.AdaptiveLimiter[any]
}

func newFailsafe(*rule.Reading) limiter { return failsafe{adaptivelimiter.NewWithDefaults[any]()} }

func (f failsafe) enter() (end func(counts bool), ok bool) {
	permit, ok := f.limiter.TryAcquirePermit()
	if !ok {
		return nil, false
	}
	return func(counts bool) {
		if counts {
			permit.Record()
		} else {
			permit.Drop()
		}
	}, true
}
