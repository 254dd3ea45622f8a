package breaker

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Kind returns what the engine knows of circuit breakers.
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind:     "breaker",
		Phase:    rule.PhaseHealth,
		Reason:   rule.Unavailable,
		Common:   common,
		Fields:   fields(),
		Examples: examples(),
		Defaults: withDefaults,
		Validate: validate,
		New:      newLimiter,
		Adopt:    adopt,
		Gauges: []rule.Gauge{
			{Name: "calls", Help: "Calls in the window of a closed breaker; with consecutive, the failures in a row."},
			{Name: "bad_calls", Help: "Calls among them that failed, or were slow if the rule is about slow calls; those that are still under way, too."},
			{Name: "open_seconds", Help: "Seconds until an open breaker lets a probe pass; 0 if it is forced."},
			{Name: "forced", Help: "1 while an operator forces the state, otherwise 0."},
		},
		States:   []string{Closed, Open, HalfOpen},
		Controls: []string{Closed, Open},
	})
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

func fields() []rule.Field[Rule] {
	return []rule.Field[Rule]{
		rule.ChoiceField("strategy", func(r *Rule) *Strategy { return &r.Strategy }, SlowRatio, ErrorRatio, ErrorCount, Consecutive).
			Says("what opens it: a share of calls that are slow, a share that fail, a number that fail, or a number that fail in a row"),
		rule.FieldOf("threshold", func(r *Rule) *float64 { return &r.Threshold }).Given("strategy").
			Required("is missing: write which share of bad calls opens the breaker, such as 0.5, or for errorCount how many").
			Says("the share of bad calls that opens it, up to 1; errorCount and consecutive: their number"),
		rule.FieldOf("slowAfter", func(r *Rule) *time.Duration { return &r.SlowAfter }).Given("strategy").
			Says("slowRatio: calls that take longer are slow").Otherwise("required with slowRatio"),
		rule.DurationOrCountField("window", "calls",
			func(r *Rule) *time.Duration { return &r.Window }, func(r *Rule) *int { return &r.WindowCalls }).Given("strategy").
			Says("the time whose calls count, in 10 buckets, or {calls: 100} for the last so many calls").
			Otherwise("10s; none with consecutive"),
		rule.FieldOf("minCalls", func(r *Rule) *int { return &r.MinCalls }).Given("strategy", "window").
			Says("it does not open before the window has so many calls").Otherwise("20, or all calls of a smaller window; with errorCount 1"),
		rule.FieldOf("openFor", func(r *Rule) *time.Duration { return &r.OpenFor }).
			Says("how long it refuses all calls before it probes"),
		rule.FieldOf("maxOpenFor", func(r *Rule) *time.Duration { return &r.MaxOpenFor }).Given("openFor").
			Says("openFor doubles after each failed probing, up to this").Otherwise("openFor: it does not double"),
		rule.FieldOf("probes", func(r *Rule) *int { return &r.Probes }).
			Says("how many calls pass to probe, and must end well for it to close"),
		rule.FieldOf("probeThreshold", func(r *Rule) *float64 { return &r.ProbeThreshold }).
			NotZero("must be from 0.001 to 1; leave it out for one bad probe to be too many").
			Says("the share of bad probes that opens it again").Otherwise("one bad probe is too many"),
		rule.FieldOf("probeTimeout", func(r *Rule) *time.Duration { return &r.ProbeTimeout }).Given("window").
			Says("a probe that has not ended by then counts as bad").Otherwise("the window, or 10s"),
	}
}

// examples are rules that have every field between them.
func examples() []rule.Example[Rule] {
	return []rule.Example[Rule]{{
		About: "Half of the payments fail: stop calling for 5 s, then probe, less and less often.",
		Rule: Rule{
			Name: "pay-errors", Resource: "pay:charge", Strategy: ErrorRatio, Threshold: 0.5,
			OpenFor: 5 * time.Second, MaxOpenFor: time.Minute,
		},
		Fields: []string{
			"name", "resource", "strategy", "threshold", "window", "minCalls", "openFor", "maxOpenFor",
			"probes", "probeTimeout", "shadow",
		},
	}, {
		About: "Half of the last 100 calls fail; it closes again if less than half of 10 probes do.",
		Rule: Rule{
			Resource: "search:query", Strategy: ErrorRatio, Threshold: 0.5, WindowCalls: 100, Probes: 10, ProbeThreshold: 0.5,
		},
		Fields: []string{"resource", "threshold", "window", "probes", "probeThreshold"},
	}, {
		About:  "A breaker for each host: most of its answers are slow.",
		Rule:   Rule{Match: "host:*", Except: rule.StringsOf("host:localhost"), Strategy: SlowRatio, Threshold: 0.8, SlowAfter: 300 * time.Millisecond, Origin: "mobile"},
		Fields: []string{"match", "except", "perResource", "strategy", "threshold", "slowAfter", "origin"},
	}}
}

func withDefaults(r *Rule) {
	r.Strategy = cmp.Or(r.Strategy, ErrorRatio)
	if r.Strategy != Consecutive {
		if r.WindowCalls == 0 {
			r.Window = cmp.Or(r.Window, defaultWindow)
		}
		r.MinCalls = cmp.Or(r.MinCalls, defaultMinCalls(r))
	}
	r.OpenFor = cmp.Or(r.OpenFor, defaultOpenFor)
	r.MaxOpenFor = cmp.Or(r.MaxOpenFor, r.OpenFor)
	r.Probes = cmp.Or(r.Probes, defaultProbes)
	r.ProbeTimeout = cmp.Or(r.ProbeTimeout, r.Window)
	r.ProbeTimeout = cmp.Or(r.ProbeTimeout, defaultWindow)
}

func defaultMinCalls(r *Rule) int {
	switch {
	case r.Strategy == ErrorCount:
		return 1
	case r.WindowCalls > 0:
		return min(usualMinCalls, r.WindowCalls)
	}
	return usualMinCalls
}

func validate(r *Rule) []rule.Fault {
	var f rule.Faults
	switch r.Strategy {
	case SlowRatio, ErrorRatio, ErrorCount, Consecutive:
		validateThreshold(&f, r)
		validateSlowAfter(&f, r)
	default:
		f.Add("strategy", "is %q: must be %q, %q, %q or %q", r.Strategy, SlowRatio, ErrorRatio, ErrorCount, Consecutive)
	}
	validateWindow(&f, r)
	validateDuration(&f, "openFor", r.OpenFor, minOpenFor)
	switch {
	case r.MaxOpenFor == r.OpenFor: // what is wrong with both has been said of openFor
	case r.MaxOpenFor < r.OpenFor && rule.Within(r.OpenFor, minOpenFor, maxDuration):
		f.Add("maxOpenFor", "is %v: must be at least openFor, %v; leave it out for an openFor that does not grow", r.MaxOpenFor, r.OpenFor)
	default:
		validateDuration(&f, "maxOpenFor", r.MaxOpenFor, minOpenFor)
	}
	validateNumber(&f, "probes", r.Probes, maxProbes)
	if r.ProbeThreshold != 0 && !rule.Within(r.ProbeThreshold, minRatio, 1) {
		f.Add("probeThreshold", "is %v: must be a share of the probes from %v to 1", r.ProbeThreshold, minRatio)
	}
	if r.ProbeTimeout != r.Window || rule.Within(r.Window, minWindow, maxDuration) { // else it has been said of the window
		validateDuration(&f, "probeTimeout", r.ProbeTimeout, minProbeTimeout)
	}
	return f
}

// validateWindow judges the calls that count, and how many there must be.
func validateWindow(f *rule.Faults, r *Rule) {
	switch {
	case r.Strategy == Consecutive:
		if r.Window != 0 || r.WindowCalls != 0 {
			f.Add("window", "has no effect with strategy %q, which looks at the calls since the last that was good: remove it", Consecutive)
		}
		if r.MinCalls != 0 {
			f.Add("minCalls", "has no effect with strategy %q: remove it", Consecutive)
		}
		return
	case r.WindowCalls != 0 && r.Window != 0:
		f.Add("window", "is both a time, %v, and a number of calls, %d: must be one of them", r.Window, r.WindowCalls)
	case r.WindowCalls != 0 && !rule.Within(r.WindowCalls, 1, maxWindowCalls):
		f.Add("window", "is {calls: %d}: must be from 1 to %d calls", r.WindowCalls, maxWindowCalls)
	case r.WindowCalls == 0:
		validateDuration(f, "window", r.Window, minWindow)
		if rule.Within(r.Window, minWindow, maxDuration) && r.Window%buckets != 0 {
			f.Add("window", "is %v: must be a multiple of %v, for it has %d equal buckets", r.Window, time.Duration(buckets), buckets)
		}
	}
	if rule.Within(r.WindowCalls, 1, maxWindowCalls) && r.MinCalls > r.WindowCalls {
		f.Add("minCalls", "is %d: must be at most the calls of the window, %d; it would never open", r.MinCalls, r.WindowCalls)
		return
	}
	validateNumber(f, "minCalls", r.MinCalls, maxCalls)
}

func validateThreshold(f *rule.Faults, r *Rule) {
	most := maxCalls
	switch r.Strategy {
	case SlowRatio, ErrorRatio:
		if !rule.Within(r.Threshold, minRatio, 1) {
			f.Add("threshold", "is %v: must be a share of the calls from %v to 1", r.Threshold, minRatio)
		}
		return
	case Consecutive:
		most = maxWindowCalls
	}
	switch {
	case !rule.Within(r.Threshold, 1, float64(most)) || r.Threshold != float64(int(r.Threshold)):
		f.Add("threshold", "is %v: must be a whole number of calls from 1 to %d with strategy %q", r.Threshold, most, r.Strategy)
	case rule.Within(r.WindowCalls, 1, maxWindowCalls) && r.Strategy == ErrorCount && r.Threshold > float64(r.WindowCalls):
		f.Add("threshold", "is %v: must be at most the calls of the window, %d; it would never open", r.Threshold, r.WindowCalls)
	}
}

func validateSlowAfter(f *rule.Faults, r *Rule) {
	switch {
	case r.Strategy != SlowRatio:
		if r.SlowAfter != 0 {
			f.Add("slowAfter", "has no effect with strategy %q: remove it or set strategy to %q", r.Strategy, SlowRatio)
		}
	case r.SlowAfter == 0:
		f.Add("slowAfter", "is missing: write how long a call may take and not be slow, such as 300ms")
	default:
		validateDuration(f, "slowAfter", r.SlowAfter, minSlowAfter)
	}
}

func validateDuration(f *rule.Faults, field string, value, least time.Duration) {
	if !rule.Within(value, least, maxDuration) {
		f.Add(field, "is %v: must be from %v to %v", value, least, maxDuration)
	}
}

func validateNumber(f *rule.Faults, field string, value, most int) {
	if !rule.Within(value, 1, most) {
		f.Add(field, "is %d: must be from 1 to %d", value, most)
	}
}
