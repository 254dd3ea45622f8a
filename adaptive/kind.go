package adaptive

import (
	"strconv"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Kind returns what the engine knows of adaptive limits.
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind:       "adaptive",
		Phase:      rule.PhaseOverload,
		Reason:     rule.Overloaded,
		Common:     common,
		Fields:     fields(),
		Examples:   examples(),
		Defaults:   withDefaults,
		Validate:   validate,
		Attributes: func(r *Rule) []string { return []string{r.FairBy} },
		New:        newLimiter,
		Adopt:      adopt,
		Signals:    signalsOf,
		Hints:      hintsOf,
		Gauges:     gauges(),
		States:     []string{Normal, Limited},
		LimitMoves: true,
	})
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

func fields() []rule.Field[Rule] {
	return []rule.Field[Rule]{
		rule.FieldOf("inbound", func(r *Rule) *bool { return &r.Inbound }).
			NotZero("must be true; leave it out, and name a resource or a pattern, for calls that do not come from outside too").
			Says("only calls that come from outside; without resource and match, all of them together").
			Otherwise("true without resource and match, else all calls"),
		rule.ChoiceField("strategy", func(r *Rule) *Strategy { return &r.Strategy }, Latency, Threshold).
			Given("cpu", "load", "memory", "schedulerDelay", "concurrency", "qps", "avgRT").
			Says("how it finds out what the service can do: latency or threshold"),
		rule.FieldOf("maxDelay", func(r *Rule) *time.Duration { return &r.MaxDelay }).Given("strategy").
			NotZero("must be from 1ms to 1m0s").
			Says("latency: the longest that calls are meant to wait at the rule").Otherwise("100ms with latency"),
		rule.FieldOf("minLimit", func(r *Rule) *int { return &r.MinLimit }).Given("strategy", "maxLimit").
			NotZero("must be from 1 to 1000000 calls under way").
			Says("not threshold: the least that the limit on calls under way can be").Otherwise("2"),
		rule.FieldOf("maxLimit", func(r *Rule) *int { return &r.MaxLimit }).Given("strategy", "minLimit").
			NotZero("must be from 1 to 1000000 calls under way").
			Says("not threshold: the most that it can be").Otherwise("1000"),
		rule.FieldOf("initialLimit", func(r *Rule) *int { return &r.InitialLimit }).Given("strategy", "minLimit", "maxLimit").
			NotZero("must be from 1 to 1000000 calls under way").
			Says("latency: what it is before anything is known").Otherwise("20"),
		rule.FieldOf("cpu", func(r *Rule) *float64 { return &r.CPU }).Given("strategy").
			NotZero("must be a share from more than 0 to 1, such as 0.8").
			Says("threshold: the share of the CPU above which calls are shed").Otherwise("it does not count"),
		rule.FieldOf("load", func(r *Rule) *float64 { return &r.Load }).Given("strategy").
			NotZero("must be more than 0; leave it out if the load does not count").
			Says("threshold: the load average per processor above which calls are shed").Otherwise("it does not count"),
		rule.FieldOf("memory", func(r *Rule) *float64 { return &r.Memory }).Given("strategy").
			NotZero("must be a share from more than 0 to 1, such as 0.9").
			Says("threshold: the share of the memory limit above which calls are shed").Otherwise("it does not count"),
		rule.FieldOf("schedulerDelay", func(r *Rule) *time.Duration { return &r.SchedulerDelay }).Given("strategy").
			NotZero("must be more than 0s; leave it out if it does not count").
			Says("threshold: how long goroutines may wait to run, 99th percentile").Otherwise("it does not count"),
		rule.FieldOf("concurrency", func(r *Rule) *int { return &r.Concurrency }).Given("strategy").
			NotZero("must be from 1 to 1000000 calls under way").
			Says("threshold: how many calls may be under way at once").Otherwise("it does not count"),
		rule.FieldOf("qps", func(r *Rule) *float64 { return &r.QPS }).Given("strategy").
			NotZero("must be at least 1; leave it out if the rate does not count").
			Says("threshold: how many calls may pass in a second").Otherwise("it does not count"),
		rule.FieldOf("avgRT", func(r *Rule) *time.Duration { return &r.AvgRT }).Given("strategy").
			NotZero("must be more than 0s; leave it out if it does not count").
			Says("threshold: the mean response time above which calls are shed").Otherwise("it does not count"),
		rule.FieldOf("fairBy", func(r *Rule) *string { return &r.FairBy }).
			Says("the attribute that tells callers apart: the same ones are served for a while"),
	}
}

// examples are rules that have every field between them.
func examples() []rule.Example[Rule] {
	return []rule.Example[Rule]{{
		About:  "All inbound calls together: what the service cannot do in time is refused, the least important first.",
		Rule:   Rule{Name: "shed", Inbound: true},
		Fields: []string{"name", "inbound", "strategy", "maxDelay", "minLimit", "maxLimit", "initialLimit", "fairBy", "shadow"},
	}, {
		About: "Sentinel's system rules: calls are shed while the CPU, the load or another value is above its threshold.",
		Rule: Rule{
			Name: "system", Strategy: Threshold, CPU: 0.9, Load: 4, Memory: 0.95, SchedulerDelay: 20 * time.Millisecond,
			Concurrency: 2000, QPS: 10_000, AvgRT: 500 * time.Millisecond,
		},
		Fields: []string{"name", "strategy", "cpu", "load", "memory", "schedulerDelay", "concurrency", "qps", "avgRT"},
	}, {
		About:  "Each report on its own.",
		Rule:   Rule{Match: "reports:*", Except: rule.StringsOf("reports:watch"), Strategy: Latency, Origin: "mobile"},
		Fields: []string{"match", "except", "perResource", "strategy", "origin"},
	}, {
		About:  "One resource.",
		Rule:   Rule{Resource: "orders:search", MaxDelay: 50 * time.Millisecond},
		Fields: []string{"resource", "maxDelay"},
	}}
}

// gauges describes what status returns, in the same order. What a strategy does not have
// is NaN.
func gauges() []rule.Gauge {
	list := []rule.Gauge{
		{Name: "limit", Help: "How many calls may be under way at once."},
		{Name: "in_flight", Help: "Calls under way."},
		{Name: "queued", Help: "Calls that wait at the rule."},
		{Name: "baseline_seconds", Help: "The mean response time of the service when it is not busy, as far as it is known."},
		{Name: "passing_share", Help: "The share of the arriving calls that is not shed by priority and caller; 1 if none is."},
		{Name: "unreadable_signals", Help: "Signals of the rule that cannot be read: it goes on without them."},
	}
	for _, p := range rule.Priorities() {
		list = append(list, rule.Gauge{
			Name: "shed", Help: "Calls that were refused.", Counter: true, Label: "priority", LabelValue: p.String(),
		})
	}
	for _, g := range []rule.Gauge{
		{Name: "apart_limit", Help: "How many calls of resources that went apart may be under way at once."},
		{Name: "apart_in_flight", Help: "Calls under way of resources that went apart."},
		{Name: "apart_queued", Help: "Calls that wait of resources that went apart."},
		{Name: "apart_limited", Help: "Whether resources that went apart are short of something, so that calls are refused."},
	} {
		for i := 1; i < maxGroups; i++ {
			g.Label, g.LabelValue = "group", strconv.Itoa(i)
			list = append(list, g)
		}
	}
	return list
}

// newLimiter returns the limiter of a rule on a resource that it did not apply to before.
func newLimiter(r *Rule, env rule.Env) rule.Limiter {
	if r.Strategy == Threshold {
		return newThreshold(r, env)
	}
	return newLatency(r, env)
}

// adopter is a limiter that a changed rule of the same strategy can go on from.
type adopter interface {
	// adopt returns the limiter of the changed rule.
	adopt(r *Rule, env rule.Env) rule.Limiter

	strategy() Strategy
}

// adopt returns the limiter of a changed rule, which goes on from the present one if the
// strategy is the same; nil if it is not.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	if former, ok := present.(adopter); ok && former.strategy() == r.Strategy {
		return former.adopt(r, env)
	}
	return nil
}
