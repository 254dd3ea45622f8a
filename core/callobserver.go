package core

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Pass is a call that passes.
type Pass struct {
	Resource string // the name that the call was made of
	Tokens   int
	At       clock.Instant // when it passes
}

// End is the end of a call that has passed.
type End struct {
	// Resource is the name that the call was made of; [Overflow] for one beyond
	// [Config.MaxResources] that no rule with a pattern matches.
	Resource string

	At       clock.Instant // when it ended
	Duration time.Duration // since it passed

	Failed    bool // [Guard.MarkFailed]
	Ignored   bool // [Guard.MarkIgnored]
	LongLived bool // [LongLived]
	Cancelled bool // [Guard.Cancel]: the call was not made after all
}

// observesPasses says whether the observer learns of calls that pass.
func (e *callEnv) observesPasses() bool { return e.observer.Passed != nil }

// reportPass reports a call that passes to the observer.
func (e *callEnv) reportPass(ctx context.Context, q *request) {
	if e.observer.Passed != nil {
		e.observer.Passed(orBackground(ctx), Pass{Resource: q.name, Tokens: int(q.Tokens), At: q.Now})
	}
}

// reportEnd reports a call that has ended to the observer.
func (g *Guard) reportEnd(now clock.Instant, word uint32, longLived bool) {
	if ended := g.resource.env.observer.Ended; ended != nil {
		ended(End{
			Resource: g.resource.Name, At: now, Duration: max(0, now.Sub(g.start)),
			Failed: word&stateMask == failed, Ignored: word&stateMask == ignored, LongLived: longLived,
		})
	}
}
