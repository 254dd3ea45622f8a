package isolation

import (
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// isFair says whether tenants have shares.
func (r Rule) isFair() bool { return r.FairBy != rule.Strings{} }

// remembered returns how many tenants that do not wait are remembered; 0 if tenants have no shares.
func (r Rule) remembered() int {
	if !r.isFair() {
		return 0
	}
	return 4 * r.MaxQueue
}

// flood returns how many unknown tenants that wait are a flood at the least.
func (r Rule) flood() int { return r.MaxQueue / 8 }

func (r Rule) defaultNewcomers() Newcomers {
	if r.MaxQueue >= DefaultNewcomersQueue {
		return NewcomersHalf
	}
	return NewcomersEqual
}

// validateFairness adds the mistakes in the fields for tenants.
func (r Rule) validateFairness(f *rule.Faults) {
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
	keys := slices.Collect(r.FairBy.All())
	slices.Sort(keys)
	switch {
	case len(keys) > rule.MaxKeys:
		f.Add("fairBy", "has %d attributes: %d is the most", len(keys), rule.MaxKeys)
	case len(slices.Compact(keys)) < r.FairBy.Len():
		f.Add("fairBy", "has an attribute twice: remove one")
	case r.Order == LIFO:
		f.Add("fairBy", `has no effect with order: lifo: remove one of them`)
	}
	if r.WeightBy != ByTime && r.WeightBy != ByCalls {
		f.Add("weightBy", "is %q: must be %q or %q", r.WeightBy, ByTime, ByCalls)
	}
	r.validateNewcomers(f)
	if r.Mask != "" && r.Mask != MaskHash {
		f.Add("mask", "is %q: must be %q, or left out", r.Mask, MaskHash)
	}
	r.validateWeights(f)
}

func (r Rule) validateNewcomers(f *rule.Faults) {
	switch r.Newcomers {
	case NewcomersHalf:
		if r.MaxWait != 0 && r.MaxQueue < MinNewcomersQueue {
			f.Add("newcomers", "has no effect with maxQueue %d: raise that to %d or more, or remove it", r.MaxQueue, MinNewcomersQueue)
		}
	case NewcomersEqual:
	default:
		f.Add("newcomers", "is %q: must be %q or %q", r.Newcomers, NewcomersHalf, NewcomersEqual)
	}
}

func (r Rule) validateWeights(f *rule.Faults) {
	if n := r.Weights.Len(); n > MaxWeights {
		f.Add("weights", "has %d entries: %d is the most", n, MaxWeights)
		return
	}
	parts := r.FairBy.Len()
	different := map[float64]bool{}
	for e := range r.Weights.All() {
		different[e.Value] = true
		switch {
		case !rule.Within(e.Value, MinWeight, MaxWeight):
			f.Add("weights", "has an entry %v that is %v: must be from %v to %v", e.Key, e.Value, MinWeight, MaxWeight)
			return
		case parts > 1 && strings.Count(e.Key.Text, "/") < parts-1:
			f.Add("weights", "has a key %v: fairBy has %d attributes, so write %d values with slashes between them", e.Key, parts, parts)
			return
		}
	}
	delete(different, 1)
	if n := len(different); n > MaxClasses {
		f.Add("weights", "has %d different weights: %d is the most", n, MaxClasses)
	}
}

// weights are those of tenants, by their values as documents write them; the others have 1.
type weights map[rule.Scalar]float64

func weightsOf(r Rule) weights {
	if r.Weights.Len() == 0 {
		return nil
	}
	w := make(weights, r.Weights.Len())
	for e := range r.Weights.All() {
		if r.FairBy.Len() > 1 {
			e.Key.Type = rule.Text
		}
		w[e.Key] = e.Value
	}
	return w
}

// of returns the weight of a tenant, and whether it has one in the rule.
func (w weights) of(value rule.Attribute) (weight float64, ok bool) {
	if w == nil || !value.IsSet() {
		return 1, false
	}
	if weight, ok := w[scalarOf(value)]; ok {
		return weight, true
	}
	return 1, false
}

func scalarOf(value rule.Attribute) rule.Scalar {
	if number, ok := value.Number(); ok {
		return rule.Scalar{Type: rule.Number, Text: strconv.FormatInt(number, 10)}
	}
	if truth, ok := value.Boolean(); ok {
		return rule.Scalar{Type: rule.Boolean, Text: strconv.FormatBool(truth)}
	}
	return rule.Scalar{Type: rule.Text, Text: value.String()}
}
