package core

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// visit is one call on its way through rules that may make it wait and through
// the checks of the user's own. All that the call has taken is in here, so that
// it can be given back.
type visit struct {
	resource     *resource
	name         string
	tokens       int32
	now          clock.Instant
	waitingSince clock.Instant

	turns   turns        // granted by queues
	windows *plan        // whose windows have given tokens, at now; or nil
	checked *checkedCall // nil until the checks are asked
}

// enterInTurn decides on a call whose plan has queues or whose engine has
// checks. Queues are asked first, so that a call takes from the windows at the
// moment at which it really passes, and for the same reason it takes from them
// again when a check has made it wait.
func (r *resource) enterInTurn(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option,
) (Guard, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	v := visit{resource: r, name: name, tokens: tokens, now: now}
	passed := false
	defer func() {
		if !passed { // refused, given up, or a check panicked
			v.giveBack()
		}
	}()
	for {
		plan := v.resource.planNow()
		if plan == nil {
			return Guard{}, ErrClosed
		}
		if ok, err := v.waitForTurns(ctx, plan); err != nil {
			return Guard{}, err
		} else if !ok {
			continue
		}
		switch rule, decision := plan.takeWindows(v.now, tokens); decision {
		case flow.Refused:
			return Guard{}, v.block(rule.refuse(tokens))
		case flow.Outdated:
			v.now = v.resource.later(rule)
			continue
		}
		v.windows = plan
		delay, err := v.askChecks(ctx, opts)
		if err != nil {
			return Guard{}, err
		}
		if delay > 0 {
			v.giveBackWindows()
			if err := v.delay(ctx, delay); err != nil {
				return Guard{}, err
			}
			continue
		}
		if passed = v.resource.pass(v.now); passed {
			return Guard{resource: v.resource, start: v.now, checks: v.checked}, nil
		}
		v.giveBackWindows()
		v.resource = v.resource.engine.resources.get(v.name)
	}
}

// askChecks asks the engine's checks, once in a call. It returns how long they
// want the call to wait.
func (v *visit) askChecks(ctx context.Context, opts []Option) (delay time.Duration, err error) {
	engine := v.resource.engine
	if len(engine.checks) == 0 || v.checked != nil {
		return 0, nil
	}
	if v.checked, err = newCheckedCall(v.name, opts); err != nil {
		return 0, err
	}
	for i, check := range engine.checks {
		verdict := check.Enter(ctx, v.checked.info, v.now)
		if !verdict.refused {
			v.checked.entered = append(v.checked.entered, check)
		}
		if verdict.refused || verdict.after > v.patience(ctx) {
			return 0, v.block(v.resource.checked[i].refuse(verdict.after))
		}
		delay = max(delay, verdict.after)
	}
	return delay, nil
}

func (v *visit) block(err *BlockError) error { return v.resource.block(v.now, err) }

// giveBack returns all that the call has taken.
func (v *visit) giveBack() {
	v.giveBackWindows()
	v.turns.giveBack(v.now)
	if v.checked != nil {
		v.checked.exit(Outcome{})
	}
}

func (v *visit) giveBackWindows() {
	if v.windows != nil {
		v.windows.giveBack(len(v.windows.windows), v.now, v.tokens)
		v.windows = nil
	}
}
