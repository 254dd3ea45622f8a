package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rule"
)

// Recharge adds tokens to a balance, that of a rule with algorithm prepaid, as an operator does. A balance
// of the whole fleet gets them once, through the first instance: they are lost while the backend does not
// answer. Else each instance adds them to its own.
type Recharge struct {
	// At is when that happens, from 0 to [MaxDuration]: before calls that arrive at the same instant. It
	// has no effect after the end of the simulation.
	At time.Duration

	// Rule is the name of the rule. If several kinds have one of that name, it is an error.
	Rule string

	// Resource is the called resource, of a rule with a pattern that has a balance for each. Else it may
	// be left out.
	Resource string

	// Tokens is how many are added; some are taken off if it is below 0.
	Tokens int64

	// Attrs are the attributes of the value whose balance it is, of a rule that has one for each: a
	// string, an int, an int64 or a bool each. Origin is the caller, if the rule looks at that.
	Attrs  map[string]any
	Origin string
}

func (l Load) validateRecharges(check checker) {
	for i, r := range l.Recharges {
		at := func(field string) string { return fmt.Sprintf("recharges[%d].%s", i, field) }
		check(r.At >= 0 && r.At <= MaxDuration, at("at"), "is %v: must be from 0s to %v", r.At, MaxDuration)
		check(r.Rule != "", at("rule"), "is missing: name the rule whose balance it is")
		check(r.Tokens != 0, at("tokens"), "is missing: say how many are added")
		check(r.Tokens >= -rule.MaxBalance && r.Tokens <= rule.MaxBalance, at("tokens"),
			"is %d: must be from %d to %d", r.Tokens, int64(-rule.MaxBalance), int64(rule.MaxBalance))
		for _, name := range slices.Sorted(maps.Keys(r.Attrs)) {
			_, plain := plainValue(r.Attrs[name])
			check(plain, at("attrs."+name), "is %T: must be text, a whole number or a boolean", r.Attrs[name])
		}
	}
}

// options returns the options of a call of the value.
func (r *Recharge) options() []core.Option {
	var options []core.Option
	if r.Origin != "" {
		options = append(options, core.Origin(r.Origin))
	}
	for name, v := range r.Attrs {
		options = append(options, attributeOption(name, v))
	}
	return options
}

// queueRecharges queues those that come before the simulation ends.
func (s *simulation) queueRecharges() {
	for i, r := range s.recharges {
		if r.At < s.options.Duration {
			s.queue.add(queuedEvent{at: r.At, kind: rechargeMade, index: i})
		}
	}
}

// makeRecharge adds tokens to a balance. The error is [Faults].
func (s *simulation) makeRecharge(index int) error {
	r := &s.recharges[index]
	ended, end := context.WithCancel(context.Background())
	end() // the answer of a fleet comes later, and nobody waits for it
	for _, i := range s.instances {
		_, err := i.engine.Recharge(ended, rule.Key{Name: r.Rule}, r.Resource, r.Tokens, core.Order{}, r.options()...)
		isOfFleet := errors.Is(err, context.Canceled) || errors.Is(err, fleet.ErrUnavailable)
		if err != nil && !isOfFleet {
			return Faults{{wholeLoad, fmt.Sprintf("recharges[%d].rule", index), fmt.Sprintf("is %q: %v", r.Rule, err)}}
		}
		s.attend(i)
		if isOfFleet {
			return nil
		}
	}
	return nil
}
