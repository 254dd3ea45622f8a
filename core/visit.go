package core

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
)

// visit is one call on its way through rules that may make it wait and through
// the checks of the user's own. It never waits itself but says what for. All
// that the call has taken is in here, so that it can be given back.
type visit struct {
	resource *resource
	name     string
	tokens   int32
	now      clock.Instant
	wait     wait

	turns     turns        // granted by queues
	held      []heldPlace  // in queues, while it waits to get a turn of all of them
	refusedBy *queueRule   // in whose queue it waited; to be told if that still applies
	windows   *steps       // whose windows have given tokens, at now; or nil
	checked   *checkedCall // nil until the checks are asked

	passed  bool
	besides *besides // what shadow rules would have done
}

// enterInTurn decides on a call whose plan has queues or whose engine has
// checks. Most of those are spared the account of a visit, which is 37 ns: the
// queues grant a turn at once and the windows have room, or the only queue refuses.
func (r *resource) enterInTurn(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, steps *steps,
) (Guard, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if len(r.engine.checks) > 0 || len(steps.windows) > 0 && steps.fullWindow(now, tokens) != nil {
		return r.visit(ctx, name, now, tokens, opts, turn{})
	}
	if len(steps.queues) > 1 {
		return r.enterSeveral(ctx, name, now, tokens, opts, steps)
	}
	rule := &steps.queues[0]
	var granted turn
	switch ticket, decision := rule.queue.Take(rule.terms, now, tokens); decision {
	case flow.Refused:
		return Guard{}, r.block(now, steps.refuseByQueue(rule, ticket, now, tokens, r.engine.patience(ctx)))
	case flow.Passed:
		if r.letPass(steps, now, tokens) {
			return Guard{resource: r, start: now, besides: steps.after.settle(now, tokens)}, nil
		}
		granted = turn{rule.queue, ticket, rule.terms, false}
	}
	return r.visit(ctx, name, now, tokens, opts, granted)
}

// enterSeveral is enterInTurn for a plan with several queues.
func (r *resource) enterSeveral(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, steps *steps,
) (Guard, error) {
	var tickets [4]flow.Ticket
	if len(steps.asks) > len(tickets) {
		return r.visit(ctx, name, now, tokens, opts, turn{})
	}
	switch which, ticket, decision := flow.TakeAll(steps.asks, now, tokens, endless, tickets[:]); decision {
	case flow.Refused: // not asked again: the queue counts what it refuses
		a := asking{now: now, tokens: tokens, patience: steps.patience(r.engine.patience(ctx))}
		return Guard{}, r.block(now, steps.queues[which].refuse(steps, ticket, a))
	case flow.Passed:
		if r.letPass(steps, now, tokens) {
			return Guard{resource: r, start: now, besides: steps.after.settle(now, tokens)}, nil
		}
		for i := range steps.asks {
			steps.asks[i].Queue.GiveBack(now, tickets[i])
		}
	}
	return r.visit(ctx, name, now, tokens, opts, turn{})
}

// visit decides on a call that may have been granted a turn.
func (r *resource) visit(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, granted turn,
) (Guard, error) {
	v := visit{resource: r, name: name, tokens: tokens, now: now}
	defer v.end()
	if granted.queue != nil {
		v.turns.add(granted)
	}
	for {
		after, err := v.proceed(ctx, opts)
		if err != nil {
			return Guard{}, err
		}
		if v.passed {
			return v.guard(), nil
		}
		err = r.engine.pause(ctx, v.now, after, v.wait.woken)
		v.now = r.engine.clock.Now()
		if err != nil {
			return Guard{}, err
		}
	}
}

// proceed goes on with the call at v.now until it has passed, is refused, or has
// to wait: then it is to be called again when the time it returns has passed, if
// that is not 0, or when the call is woken.
//
// Queues are asked first, so that a call takes from the windows at the moment at
// which it really passes, and for the same reason it takes from them again when
// a check has made it wait.
func (v *visit) proceed(ctx context.Context, opts []Option) (after time.Duration, err error) {
	for {
		if after, waits := v.goOnWaiting(); waits {
			return after, nil
		}
		v.resource = v.resource.again(v.name)
		plan := v.resource.planNow()
		if plan == nil {
			return 0, ErrClosed
		}
		steps := plan.stepsOf(opts)
		if refusal := v.refusedBy; refusal != nil {
			v.refusedBy = nil
			if steps.hasQueue(refusal.queue) { // else that rule is no longer one for this call
				wait := refusal.queue.RetryAfter(v.now, v.tokens, v.patience(ctx))
				return 0, v.block(steps.refuse(refusal.refusals, wait, v.asking(ctx)))
			}
		}
		if ok, err := v.takeTurns(ctx, steps); err != nil {
			return 0, err
		} else if !ok {
			continue
		}
		switch rule, decision := steps.takeWindows(v.now, v.tokens); decision {
		case flow.Refused:
			return 0, v.block(rule.refuse(steps, v.asking(ctx)))
		case flow.Outdated:
			v.now = v.resource.later(rule)
			continue
		}
		v.windows = steps
		if delay, err := v.askChecks(ctx, opts); err != nil {
			return 0, err
		} else if delay > 0 {
			v.giveBackWindows()
			v.beginWait(nil)
			v.wait.until = v.now.Add(delay)
			continue
		}
		if v.passed = v.resource.pass(v.now); v.passed {
			v.besides = steps.after.settle(v.now, v.tokens)
			return 0, nil
		}
		v.giveBackWindows()
	}
}

// guard returns the guard of a call that has passed.
func (v *visit) guard() Guard {
	if c := v.checked; c != nil {
		c.besides.checks = c
		if v.besides != nil {
			c.besides.wouldBlock = v.besides.wouldBlock
		}
		v.besides = &c.besides
	}
	return Guard{resource: v.resource, start: v.now, besides: v.besides}
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

func (v *visit) asking(ctx context.Context) asking {
	return asking{now: v.now, tokens: v.tokens, patience: v.patience(ctx), turns: &v.turns, held: v.held}
}

func (v *visit) block(err *BlockError) error { return v.resource.block(v.now, err) }

// end gives back all that the call has taken unless it has passed: it was
// refused, has given up, or a check panicked.
func (v *visit) end() {
	if v.passed {
		return
	}
	v.stopWaiting()
	v.giveBackWindows()
	v.turns.giveBack(v.now)
	if v.checked != nil {
		v.checked.exit(Outcome{})
	}
}

func (v *visit) giveBackWindows() {
	if v.windows != nil {
		v.windows.giveBackAll(v.now, v.tokens)
		v.windows = nil
	}
}
