package hotparam

import (
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// validate returns the mistakes of a complete rule in the fields that only this kind has.
func validate(r *Rule) []rule.Fault {
	var f rule.Faults
	r.validateParam(&f)
	if r.Concurrency != 0 {
		r.validateConcurrency(&f)
	} else {
		r.validateRate(&f)
	}
	if !rule.Within(r.MaxValues, minMaxValues, maxMaxValues) {
		f.Add("maxValues", "is %d: must be from %d to %d", r.MaxValues, minMaxValues, maxMaxValues)
	}
	r.validateValues(&f)
	r.validatePenalty(&f)
	r.validateFleet(&f)
	settings.ValidateOnExceed(&f, r.OnExceed, r.waits())
	settings.ValidateCounts(&f, r.Counts, r.keepsTokens())
	settings.ValidateWarnAt(&f, r.WarnAt, r.hidesUse())
	switch r.Missing {
	case rule.MissingPass, rule.MissingShare, rule.MissingBlock, rule.MissingUnauthenticated:
	default:
		f.Add("missing", "is %q: must be %q, %q, %q or %q", r.Missing, rule.MissingPass, rule.MissingShare, rule.MissingBlock, rule.MissingUnauthenticated)
	}
	if r.Mask != "" && r.Mask != rule.MaskHash {
		f.Add("mask", "is %q: must be %q; leave it out to show values", r.Mask, rule.MaskHash)
	}
	return f
}

// waits says what to change so that no call waits for the rule; "" if none does.
func (r *Rule) waits() string {
	switch {
	case r.Algorithm == Throttle:
		return "set algorithm to " + string(TokenBucket)
	case isOfFleet(r) && (r.Algorithm == FixedWindow || r.Algorithm == Prepaid || r.Concurrency != 0):
		return settings.InsteadOfAsking(r.Fleet, "")
	case isOfFleet(r):
		return settings.InsteadOfAsking(r.Fleet, fleet.ModeLease)
	}
	return ""
}

// keepsTokens says what to change so that calls can give back all that they took; "" if they can.
func (r *Rule) keepsTokens() string {
	switch {
	case r.Concurrency != 0:
		return "set limit in place of concurrency"
	case r.Algorithm == Throttle:
		return "set algorithm to " + string(TokenBucket)
	}
	return ""
}

// knowsUseBy says what makes known how much of the window of a value all instances have used.
func (r *Rule) knowsUseBy() string {
	if r.Shadow { // it does not wait for answers
		return "remove scope"
	}
	return "set fleet.mode to " + string(fleet.ModeAsk)
}

// hidesUse says what to change so that it is known how much of a limit is used; "" if it is.
func (r *Rule) hidesUse() string {
	switch {
	case r.Concurrency != 0:
		return "set limit in place of concurrency"
	case !r.countsWhole():
		return "set algorithm to " + string(FixedWindow)
	case isOfFleet(r) && r.decisionMode() != fleet.ModeAsk:
		return r.knowsUseBy()
	}
	return ""
}

func (r *Rule) validateParam(f *rule.Faults) {
	switch n := r.Param.Len(); {
	case n == 0:
		f.Add("param", "is missing: write the attribute whose values the rule limits, such as user or ip")
	case n > rule.MaxKeys:
		f.Add("param", "has %d keys: must have at most %d", n, rule.MaxKeys)
	}
	seen := make(map[string]bool)
	for key := range r.Param.All() {
		if key == "" {
			f.Add("param", `has a key "": name an attribute, such as user or ip`)
		} else if seen[key] {
			f.Add("param", "has %s twice: remove one", rule.Quote(key))
		}
		seen[key] = true
	}
}

// validateConcurrency judges a rule that limits how many calls are under way.
func (r *Rule) validateConcurrency(f *rule.Faults) {
	if !rule.Within(r.Concurrency, 1, maxConcurrency) {
		f.Add("concurrency", "is %d: must be from 1 to %d calls under way", r.Concurrency, maxConcurrency)
	}
	if r.MaxAge != 0 && !rule.Within(r.MaxAge, minMaxAge, maxMaxAge) {
		f.Add("maxAge", "is %v: must be from %v to %v, or left out", r.MaxAge, minMaxAge, maxMaxAge)
	}
	const noEffect = "has no effect beside concurrency: remove one of them"
	if r.Limit != 0 {
		f.Add("limit", "stands beside concurrency: a rule has one or the other; remove one")
	}
	if r.Window != 0 || r.Calendar != (rule.Calendar{}) {
		f.Add("window", noEffect)
	}
	if r.Algorithm != "" {
		f.Add("algorithm", noEffect)
	}
	if r.Burst != 0 {
		f.Add("burst", noEffect)
	}
	if r.MaxWait != 0 {
		f.Add("maxWait", noEffect)
	}
}

// validateRate judges a rule that limits how much passes in a time.
func (r *Rule) validateRate(f *rule.Faults) {
	if r.MaxAge != 0 {
		f.Add("maxAge", "has no effect without concurrency: remove it")
	}
	if fault := r.limitFault(r.Limit); fault != "" {
		f.Add("limit", "is %v: %s", r.Limit, fault)
	}
	settings.ValidateCalendar(f, r.Window, r.Calendar)
	switch r.Algorithm {
	case TokenBucket, SlidingWindow, FixedWindow, Throttle, Prepaid:
		r.validateWindow(f)
	default:
		f.Add("algorithm", "is %q: must be %q, %q, %q, %q or %q", r.Algorithm, TokenBucket, SlidingWindow, FixedWindow, Throttle, Prepaid)
		return
	}
	switch {
	case r.Algorithm != TokenBucket:
		if r.Burst != 0 {
			f.Add("burst", "has no effect with algorithm %q: remove it or set algorithm to %q", r.Algorithm, TokenBucket)
		}
	case !rule.Within(r.burst(r.Limit), 1, MaxLimit):
		f.Add("burst", "is %v: must be from 1 to %d tokens", r.Burst, MaxLimit)
	}
	switch {
	case r.Algorithm != Throttle:
		if r.MaxWait != 0 {
			f.Add("maxWait", "has no effect with algorithm %q: remove it or set algorithm to %q", r.Algorithm, Throttle)
		}
	case !rule.Within(r.MaxWait, 0, maxMaxWait):
		f.Add("maxWait", "is %v: must be from 0s (no waiting) to %v", r.MaxWait, maxMaxWait)
	}
}

// limitFault returns what is wrong with a limit, that of the rule or of one of its
// values; "" if nothing is.
func (r *Rule) limitFault(limit float64) string {
	switch {
	case r.Concurrency != 0:
		if !rule.Within(limit, 0, maxConcurrency) || limit != math.Trunc(limit) {
			return "must be a whole number from 0 (blocks all) to 1000000 calls under way"
		}
	case !rule.Within(limit, 0, MaxLimit):
		return "must be from 0 (blocks all) to 1000000000 tokens per window"
	case limit != 0 && limit < minLimit:
		return "must be 0 (blocks all) or at least 0.000001 tokens per window"
	}
	return r.wholeFault(limit)
}

// validateBuckets judges a time that is counted in buckets.
func validateBuckets(f *rule.Faults, field string, window time.Duration) {
	switch {
	case !rule.Within(window, minSliding, maxWindow):
		f.Add(field, "is %v: must be from %v to %v", window, minSliding, maxWindow)
	case window%buckets != 0:
		f.Add(field, "is %v: must be a multiple of %v, for it has %d equal buckets", window, time.Duration(buckets), buckets)
	}
}

func (r *Rule) validateValues(f *rule.Faults) {
	if n := r.Values.Len(); n > maxEntries {
		f.Add("values", "has %d entries: must have at most %d", n, maxEntries)
		return
	}
	_, faults := parseValues(r)
	for _, fault := range faults {
		f.Add("values", "%s", fault)
	}
	if len(faults) == 0 && (r.Algorithm == TokenBucket || r.Algorithm == Throttle || r.Algorithm == Prepaid) {
		r.validateLimits(f)
	}
}

// validateLimits judges whether one table can hold the states of values with all limits.
func (r *Rule) validateLimits(f *rule.Faults) {
	limits := []float64{r.Limit}
	for entry := range r.Values.All() {
		if !slices.Contains(limits, entry.Value) {
			limits = append(limits, entry.Value)
		}
	}
	if n := len(limits) - 1; n > maxLimits {
		f.Add("values", "has %d different limits: must have at most %d", n, maxLimits)
		return
	}
	if r.Algorithm == Prepaid {
		return
	}
	switch _, err := compileRates(r, 1, limits); {
	case err == nil || len(*f) > 0:
	case len(limits) == 1:
		f.Add("limit", "is too small for its window and burst: raise it, shorten window or lower burst (%v)", err)
	default:
		f.Add("values", "has limits that differ too much from each other or from limit: use rules of their own for some (%v)", err)
	}
}

func (r *Rule) validatePenalty(f *rule.Faults) {
	p := r.Penalty
	if p == (Penalty{}) {
		return
	}
	if !rule.Within(p.After, 1, maxAfter) {
		f.Add("penalty.after", "is %d: must be from 1 to %d refusals", p.After, maxAfter)
	}
	validateBuckets(f, "penalty.within", p.Within)
	if !rule.Within(p.For, minPenalty, maxWindow) {
		f.Add("penalty.for", "is %v: must be from %v to %v", p.For, minPenalty, maxWindow)
	}
}
