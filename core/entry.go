package core

import (
	"context"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// enter decides on one call: the whole way down. The name is that of the
// resource, or one of those that share the resource for overflow. If r is nil, it is
// looked up: here rather than in Entry, which so is short enough to be inlined, 2 ns.
func (e *Engine) enter(ctx context.Context, r *resource, name string, opts []Option) (Guard, error) {
	tokens, err := tokensOf(opts)
	if err != nil {
		return Guard{}, err
	}
	if r == nil {
		r = e.resources.get(name)
	}
	now := e.clock.Now()
	for {
		plan := r.planNow()
		if plan == nil {
			return Guard{}, ErrClosed
		}
		steps := plan.stepsOf(opts)
		if len(steps.queues) > 0 || len(e.checks) > 0 {
			return r.enterInTurn(ctx, name, now, tokens, opts, steps)
		}
		switch rule, decision := steps.takeWindows(now, tokens); decision {
		case flow.Passed:
			if r.pass(now) {
				return Guard{resource: r, start: now, besides: steps.after.settle(now, tokens)}, nil
			}
			steps.giveBackAll(now, tokens)
		case flow.Refused:
			return Guard{}, r.block(now, steps.refuseByWindow(rule, now, tokens))
		default:
			now = r.later(rule)
		}
		r = r.again(name)
	}
}

// later reads the clock again for a call that a window found outdated: the
// window has seen another goroutine's later instant, or newer rules.
func (r *resource) later(rule *windowRule) clock.Instant {
	return max(r.engine.clock.Now(), rule.window.Opened())
}

// letPass takes tokens of the windows and counts the call as passed at now. If that
// cannot be, it leaves no trace.
func (r *resource) letPass(s *steps, now clock.Instant, n int32) bool {
	if _, decision := s.takeWindows(now, n); decision != flow.Passed {
		return false
	}
	if !r.pass(now) {
		s.giveBackAll(now, n)
		return false
	}
	return true
}

// pass counts a call that is let through at now. It returns false when the
// resource has just been forgotten, as nobody called it, or a name that had found no
// room has found one: then nothing is counted.
func (r *resource) pass(now clock.Instant) bool {
	r.node.Pass(now)
	if r.evicted.Load() && !r.isOutside() {
		r.node.TakeBack(now)
		return false
	}
	return true
}

// block accounts for a refused call.
func (r *resource) block(now clock.Instant, err *BlockError) error {
	r.node.Block(now)
	r.reportRefusal(now, err)
	return err
}
