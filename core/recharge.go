package core

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/penstock-go/penstock/clock"
	internalcall "github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// isRecharged says whether a quota, which may be nil, is that of a balance that has not what it had at first.
func isRecharged(q *rule.Quota) bool {
	return q != nil && q.Prepaid && float64(q.Remaining) != q.Limit
}

// Recharge adds tokens to a balance that a rule with algorithm prepaid has: to that of the value which
// a call with these options has, if the rule has one for each value, and to that of the resource, if it
// has one for each of several: else resource may be "". The kind of the key may be "" if no rules of several
// kinds have the name. A number below 0 takes some off, however few are
// left, and 0 only tells what is left, which is returned: below 0 if more was taken than there was.
//
// Of a rule with scope fleet it is the balance of all instances together, in the backend of the fleet; it
// waits for the answer. If there is none in time the error matches [fleet.ErrUnavailable], or is that of
// ctx, and tokens may have been added nevertheless: ask with 0 before it is tried again.
//
// Every change is an event and a line of the log, with who has made it: order.By, and Reason. Other errors
// say that there is no such rule in force, that it has no balance, which attribute the options lack, that they
// name a value of a rule that has one balance for all, or what was wrong.
func (e *Engine) Recharge(ctx context.Context, key rule.Key, resource string, tokens int64, order Order, opts ...Option) (left int64, err error) {
	if max(tokens, -tokens) > rule.MaxBalance {
		return 0, fmt.Errorf("core: %d tokens: a balance can have at most %d", tokens, int64(rule.MaxBalance))
	}
	of, limiter, err := e.balanceOf(key, resource)
	if err != nil {
		return 0, err
	}
	if tokens != 0 && len(of.Rule.Attributes()) == 0 && internalcall.NameAttributes(opts) {
		return 0, fmt.Errorf("core: rule %v has one balance for all values: name none", of.Rule.Key())
	}
	now := e.clock.Now()
	call, err := valueCall(of, now, opts)
	if err != nil {
		return 0, err
	}
	left, err = recharge(ctx, limiter, call, tokens)
	if err != nil {
		return 0, fmt.Errorf("core: rule %v: %w", of.Rule.Key(), err)
	}
	if tokens != 0 {
		e.tellRecharge(of, limiter, call, tokens, left, order)
	}
	return left, nil
}

// balanceOf returns a rule, and the limiter that has its balance of a resource.
func (e *Engine) balanceOf(key rule.Key, resource string) (of *inforce.Planned, limiter optional.Recharger, err error) {
	of, err = e.plannedFor(key, resource)
	if err != nil {
		return nil, nil, err
	}
	limiter, ok := of.Limiter.(optional.Recharger)
	if !ok {
		return nil, nil, fmt.Errorf("core: rule %v: %w", key, optional.ErrNoBalance)
	}
	return of, limiter, nil
}

// plannedFor returns a rule in force, and its limiter on a resource.
func (e *Engine) plannedFor(key rule.Key, resource string) (*inforce.Planned, error) {
	of, err := e.activeRule(key)
	if err != nil {
		return nil, err
	}
	key = of.Rule.Key()
	target := of.Rule.Target()
	if target.Resource != "" {
		if resource != "" && resource != target.Resource {
			return nil, fmt.Errorf("core: rule %v is for the resource %s", key, rule.Quote(target.Resource))
		}
		resource = target.Resource
	}
	if of.Limiter != nil {
		return of, nil
	}
	if resource == "" {
		return nil, fmt.Errorf("core: rule %v has a balance for each resource that matches: say which", key)
	}
	p := e.get(resource).planNow()
	if p == nil {
		return nil, ErrClosed
	}
	for i := range p.Rules {
		if p.Rules[i].Rule.Key() == key {
			return &p.Rules[i], nil
		}
	}
	return nil, fmt.Errorf("core: rule %v is not for the resource %s", key, rule.Quote(resource))
}

// activeRule returns the rule in force that has a key, whose kind may be "", and its limiter if it has one for all
// resources.
func (e *Engine) activeRule(key rule.Key) (*inforce.Planned, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return nil, ErrClosed
	}
	found := e.rules.inForce(key)
	if found == nil && key.Kind == "" {
		for of, a := range e.rules.all() {
			switch {
			case of.Name != key.Name:
			case found != nil:
				return nil, fmt.Errorf("core: rules of several kinds have the name %s: say which kind", rule.Quote(key.Name))
			default:
				found = a
			}
		}
	}
	if found == nil {
		return nil, fmt.Errorf("core: no rule %v is in force", key)
	}
	of := &inforce.Planned{Rule: found.Version}
	if found.SharesLimiter {
		e.resources.SwapMu.Lock()
		defer e.resources.SwapMu.Unlock()
		of.Limiter = found.Shared.Limiter
	}
	return of, nil
}

// valueCall returns a call with these options as the rule sees it. The error says which attribute they
// lack.
func valueCall(p *inforce.Planned, now clock.Instant, opts []Option) (rule.Call, error) {
	call, found := askedOf(context.Background(), p, now, opts)
	call.Now, call.Tokens = now, 1
	var missing []string
	for _, attribute := range found {
		if !attribute.Value.IsSet() {
			missing = append(missing, attribute.Key)
		}
	}
	if len(missing) > 0 {
		return call, fmt.Errorf("core: rule %v looks at %s: say which value of %s",
			p.Rule.Key(), strings.Join(p.Rule.Attributes(), ", "), strings.Join(missing, ", "))
	}
	return call, nil
}

// recharge changes a balance, and waits for what is left.
func recharge(ctx context.Context, limiter optional.Recharger, call rule.Call, tokens int64) (int64, error) {
	type answer struct {
		left int64
		err  error
	}
	answers := make(chan answer, 1)
	limiter.Recharge(call, tokens, func(left int64, err error) { answers <- answer{left, err} })
	select {
	case a := <-answers: // also if ctx has ended: a balance of this instance answers at once
		return a.left, a.err
	default:
	}
	select {
	case a := <-answers:
		return a.left, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// tellRecharge tells that a balance was changed.
func (e *Engine) tellRecharge(of *inforce.Planned, limiter optional.Recharger, call rule.Call, tokens, left int64, order Order) {
	var value string
	if keeper, ok := limiter.(optional.ValueKeeper); ok {
		value = keeper.ValueOf(call).Value
	}
	key, target := of.Rule.Key(), of.Rule.Target()
	by, reason := cleaned(order.By), cleaned(order.Reason)
	text := fmt.Sprintf("%d tokens were added, %d are left", tokens, left)
	if value != "" {
		text = fmt.Sprintf("the value %q: %s", value, text)
	}
	e.log.Info("penstock: a balance was recharged", slog.String("rule", key.String()), slog.String("value", value),
		slog.Int64("tokens", tokens), slog.Int64("left", left), slog.String("by", by), slog.String("reason", reason))
	if reason != "" {
		text += ": " + reason
	}
	e.events.add(Event{
		At: call.Now, Type: eventRecharge, Resource: target.Resource, Kind: key.Kind, Rule: key.Name, By: by, Text: text,
	})
}
