package isolation

import (
	"github.com/penstock-go/penstock/internal/tenants"
	"github.com/penstock-go/penstock/rule"
)

// isFair says whether tenants have shares.
func (r *Rule) isFair() bool { return r.FairBy != rule.Strings{} }

// remembered returns how many tenants that do not wait are remembered; 0 if tenants have no shares.
func (r *Rule) remembered() int {
	if !r.isFair() {
		return 0
	}
	return 4 * r.MaxQueue
}

// flood returns how many unknown tenants that wait are a flood at the least.
func (r *Rule) flood() int { return r.MaxQueue / 8 }

func (r *Rule) defaultNewcomers() rule.Newcomers {
	if r.MaxQueue >= defaultNewcomersQueue {
		return rule.NewcomersHalf
	}
	return rule.NewcomersEqual
}

// validateFairness adds the mistakes in the fields for tenants.
func (r *Rule) validateFairness(f *rule.Faults) {
	if !r.isFair() {
		const noEffect = "has no effect without fairBy: remove it or set fairBy"
		if r.Weights.Len() > 0 {
			f.Add("weights", noEffect)
		}
		if r.WeightBy != "" {
			f.Add("weightBy", noEffect)
		}
		if r.Newcomers != "" {
			f.Add("newcomers", noEffect)
		}
		if r.Mask != "" {
			f.Add("mask", noEffect)
		}
		return
	}
	if r.Order == LIFO {
		f.Add("fairBy", `has no effect with order: lifo: remove one of them`)
	}
	if r.WeightBy != ByTime && r.WeightBy != ByCalls {
		f.Add("weightBy", "is %q: must be %q or %q", r.WeightBy, ByTime, ByCalls)
	}
	r.validateNewcomers(f)
	r.tenants().Validate(f)
}

// tenants returns the fields that say whose calls wait.
func (r *Rule) tenants() tenants.Fields {
	return tenants.Fields{FairBy: r.FairBy, Weights: r.Weights, Mask: r.Mask}
}

func (r *Rule) validateNewcomers(f *rule.Faults) {
	switch r.Newcomers {
	case rule.NewcomersHalf:
		if r.MaxWait != 0 && r.MaxQueue < minNewcomersQueue {
			f.Add("newcomers", "has no effect with maxQueue %d: raise that to %d or more, or remove it", r.MaxQueue, minNewcomersQueue)
		}
	case rule.NewcomersEqual:
	default:
		f.Add("newcomers", "is %q: must be %q or %q", r.Newcomers, rule.NewcomersHalf, rule.NewcomersEqual)
	}
}
