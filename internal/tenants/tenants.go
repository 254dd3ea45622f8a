// Package tenants is what kinds of rules have in common whose waiting calls are of tenants that get shares:
// the fields that say whose call it is and what its tenant weighs, and what status says of those who
// wait.
package tenants

import (
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// Ranges of weights.
const (
	MinWeight  = 0.01
	MaxWeight  = 1000
	MaxEntries = 1000
	MaxClasses = 32 // different weights, beside 1
)

// Fields are those of a rule.
type Fields struct {
	FairBy  rule.Strings
	Weights rule.NumberMap
	Mask    rule.Mask
}

// Validate adds the mistakes in the fields of a rule that has FairBy.
func (r Fields) Validate(f *rule.Faults) {
	keys := slices.Collect(r.FairBy.All())
	slices.Sort(keys)
	switch {
	case len(keys) > rule.MaxKeys:
		f.Add("fairBy", "has %d attributes: %d is the most", len(keys), rule.MaxKeys)
	case len(slices.Compact(keys)) < r.FairBy.Len():
		f.Add("fairBy", "has an attribute twice: remove one")
	}
	if r.Mask != "" && r.Mask != rule.MaskHash {
		f.Add("mask", "is %q: must be %q, or left out", r.Mask, rule.MaskHash)
	}
	r.validateWeights(f)
}

func (r Fields) validateWeights(f *rule.Faults) {
	if n := r.Weights.Len(); n > MaxEntries {
		f.Add("weights", "has %d entries: %d is the most", n, MaxEntries)
		return
	}
	parts := r.FairBy.Len()
	different := map[float64]bool{}
	for e := range r.Weights.All() {
		different[e.Value] = true
		switch {
		case !rule.Within(e.Value, MinWeight, MaxWeight):
			f.Add("weights", "has an entry %s that is %v: must be from %v to %v", settings.WrittenKey(e.Key), e.Value, MinWeight, MaxWeight)
			return
		case parts > 1 && strings.Count(e.Key.String(), "/") < parts-1:
			f.Add("weights", "has a key %s: fairBy has %d attributes, so write %d values with slashes between them", settings.WrittenKey(e.Key), parts, parts)
			return
		}
	}
	delete(different, 1)
	if n := len(different); n > MaxClasses {
		f.Add("weights", "has %d different weights: %d is the most", n, MaxClasses)
	}
}

// Weights are those of tenants, by their values; the others have 1. They never change.
type Weights map[key]float64

// key is the value of an attribute, in a form that maps can have as a key.
type key struct {
	isNumber, isBoolean bool
	text                string
}

func keyOf(value rule.Attribute) key {
	_, isNumber := value.Number()
	_, isBoolean := value.Boolean()
	return key{isNumber, isBoolean, value.String()}
}

// CompileWeights returns the weights of a rule; nil if it has none.
func CompileWeights(r Fields) Weights {
	if r.Weights.Len() == 0 {
		return nil
	}
	w := make(Weights, r.Weights.Len())
	for e := range r.Weights.All() {
		if r.FairBy.Len() > 1 { // as composite values are texts
			e.Key = rule.String(e.Key.String())
		}
		w[keyOf(e.Key)] = e.Value
	}
	return w
}

// Of returns the weight of a tenant, and whether it has one in the rule.
func (w Weights) Of(value rule.Attribute) (weight float64, ok bool) {
	if w == nil || !value.IsSet() {
		return 1, false
	}
	if weight, ok := w[keyOf(value)]; ok {
		return weight, true
	}
	return 1, false
}

// Kept returns a value as it may be kept: a composite one is valid only while the limiter is asked.
func Kept(value rule.Attribute) rule.Attribute {
	parts := value.Parts()
	if parts == nil {
		return value
	}
	kept := new([rule.MaxKeys]rule.Attribute)
	return rule.Composite(kept, copy(kept[:], parts))
}
