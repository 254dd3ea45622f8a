package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/internal/openwindow"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// Kind returns the kind of flow rules.
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind: kindName, Phase: rule.PhaseRate, Reason: rule.RateLimited,
		Common: common, Fields: fields(), Examples: examples(),
		Former:   []document.FormerField[Rule]{{Path: "control", Now: "algorithm", Read: readControl}},
		Defaults: defaults, Validate: validate,
		Signals: signals, Attributes: (*Rule).attributes, Gauges: gauges(),
		Fleet:   isOfFleet,
		Counts:  func(r *Rule) rule.Counts { return r.Counts },
		Demotes: func(r *Rule) bool { return r.OnExceed == rule.ExceedDemote },
		Compile: func(r *Rule, version uint64) any { return compile(r, version) },
		New:     newLimiterFor,
		Adopt:   adopt,
	})
}

// signals returns the signal that the limit of the rule follows.
func signals(r *Rule) []rule.Signal {
	if r.Follow == (Follow{}) {
		return nil
	}
	return []rule.Signal{r.Follow.Signal}
}

// compiledFor returns the compiled rule, which follows the signals and the wall clock of the
// engine, and goes on from the version before; nil if there is none.
func compiledFor(env rule.Env, before *compiledRule) *compiledRule {
	compiled := env.Compiled.(*compiledRule)
	compiled.FollowSignal(env.Signals)
	if compiled.windows != nil {
		var present *openwindow.Windows
		if before != nil {
			present = before.windows
		}
		compiled.windows.Keep(env.Until, env.Now, present)
	}
	return compiled
}

// newLimiterFor returns the limiter of a rule that counts nothing yet. Without a fleet each
// instance has the limit.
func newLimiterFor(r *Rule, env rule.Env) rule.Limiter {
	if isOfFleet(r) && env.Fleet != nil {
		return newFleetLimiter(r, env)
	}
	if r.Algorithm == Prepaid {
		return newPrepaid(env.Compiled.(*compiledRule))
	}
	return newLimiter(compiledFor(env, nil), env.Now).warnBy(env.Warn).shareFairly(env.Seed).limiter()
}

// adopt returns the limiter of a changed rule: the same one, or another one that
// follows it if the rule counts in another way now; nil if the present one is of the fleet.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	if isOfFleet(r) && env.Fleet != nil {
		return adoptFleet(present, r, env)
	}
	if r.Algorithm == Prepaid {
		return adoptPrepaid(present, env.Compiled.(*compiledRule))
	}
	before := ruleLimiterOf(present)
	if before == nil {
		return nil
	}
	compiled := compiledFor(env, before.compiled)
	return before.next(compiled, env.Now).warnBy(env.Warn).shareFairly(env.Seed).limiter()
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		Related: &r.Related,
	}
}

// fields are what documents may say. To let them have one more field, add it to
// [Rule] and to the list here.
func fields() []rule.Field[Rule] {
	return slices.Concat([]rule.Field[Rule]{
		rule.FieldOf("limit", func(r *Rule) *float64 { return &r.Limit }).
			Required("is missing: write how many tokens may pass in a window, 0 to block all").
			Says("tokens per window, a call takes one; 0 blocks all, 0.5 is one in two windows"),
	}, rule.CalendarFields(func(r *Rule) *time.Duration { return &r.Window },
		func(r *Rule) *rule.Calendar { return &r.Calendar }, "algorithm"), []rule.Field[Rule]{
		rule.ChoiceField("algorithm", func(r *Rule) *Algorithm { return &r.Algorithm },
			SlidingWindow, FixedWindow, TokenBucket, Throttle, Prepaid).Accepts("leakyBucket", string(Throttle)).
			Says("slidingWindow, fixedWindow, tokenBucket, throttle, which spaces calls evenly, or prepaid, a balance that is only recharged"),
		rule.FieldOf("buckets", func(r *Rule) *int { return &r.Buckets }).Given("window", "algorithm").
			Says("the parts of a slidingWindow"),
		rule.FieldOf("strict", func(r *Rule) *bool { return &r.Strict }).Given("algorithm").
			Says("slidingWindow: the limit holds over every interval, aligned to buckets or not"),
		rule.FieldOf("maxWait", func(r *Rule) *time.Duration { return &r.MaxWait }).Given("algorithm").
			Says("throttle and tokenBucket: the longest that a call may wait"),
		rule.FieldOf("fairBy", func(r *Rule) *rule.Strings { return &r.FairBy }).Given("algorithm", "maxWait", "scope").
			Says("the attribute of calls that tells tenants apart, or a list of several: each tenant gets its share of what passes, whoever else waits; only with maxWait").Otherwise("no shares"),
		rule.FieldOf("weights", func(r *Rule) *rule.NumberMap { return &r.Weights }).Given("fairBy").
			Says("tenants that get more or less than others, whose weight is 1; only with fairBy").Otherwise("all have 1"),
		rule.ChoiceField("weightBy", func(r *Rule) *WeightBy { return &r.WeightBy }, ByTokens, ByCalls).Given("fairBy").
			Says("what tenants get shares of: tokens, or calls; only with fairBy"),
		rule.ChoiceField("newcomers", func(r *Rule) *rule.Newcomers { return &r.Newcomers }, rule.NewcomersHalf, rule.NewcomersEqual).Given("fairBy").
			Says("what tenants get together that are not known, while many of them wait: half, or equal to take them for known; only with fairBy").
			Otherwise("half if 256 tokens may wait"),
		rule.ChoiceField("mask", func(r *Rule) *rule.Mask { return &r.Mask }, rule.MaskHash).Given("fairBy").
			Says("hash: status shows a hash in place of each tenant; only with fairBy").Otherwise("tenants are shown"),
		rule.FieldOf("burst", func(r *Rule) *float64 { return &r.Burst }).Given("limit", "algorithm", "overdraft").
			Says("tokenBucket: how many tokens it holds, and has at the start").Otherwise("the limit, at least 1"),
		rule.FieldOf("overdraft", func(r *Rule) *bool { return &r.Overdraft }).Given("algorithm").
			Says("tokenBucket: a call goes when nothing is owed, whatever it takes; those behind it pay"),
		rule.FieldOf("warmUp.period", func(r *Rule) *time.Duration { return &r.WarmUp.Period }).
			Says("how long a cold resource takes to become warm under full load").Otherwise("off"),
		rule.FieldOf("warmUp.coldFactor", func(r *Rule) *float64 { return &r.WarmUp.ColdFactor }).
			Says("how much lower the effective limit is at first"),
		rule.FieldOf("warmUp.step", func(r *Rule) *time.Duration { return &r.WarmUp.Step }).Given("algorithm").
			Says("how often the effective limit is computed anew; not for tokenBucket"),
		rule.FieldOf("follow.signal", func(r *Rule) *string { return (*string)(&r.Follow.Signal) }).
			Says("lowers the limit while this signal is high, such as cpu, load or memory").Otherwise("off"),
		rule.FieldOf("follow.from", func(r *Rule) *float64 { return &r.Follow.From }).Given("follow.signal", "follow.to").
			Says("up to which number of the signal the limit is as written"),
		rule.FieldOf("follow.to", func(r *Rule) *float64 { return &r.Follow.To }).Given("follow.signal", "follow.from").
			Says("from which number of the signal on the limit is the least"),
		rule.FieldOf("follow.least", func(r *Rule) *float64 { return &r.Follow.Least }).Given("limit", "follow.signal").
			Says("the limit from there on; in between it falls linearly"),
		settings.OnExceedField(func(r *Rule) *rule.OnExceed { return &r.OnExceed }),
		settings.CountsField(func(r *Rule) *rule.Counts { return &r.Counts }),
		settings.WarnAtField(func(r *Rule) *float64 { return &r.WarnAt }),
	}, settings.FleetFields(func(r *Rule) *rule.Scope { return &r.Scope }, func(r *Rule) *rule.Fleet { return &r.Fleet }))
}

// readControl reads the field "control" of older documents, where a throttle was
// "control: throttle" without an algorithm.
func readControl(r *Rule, v document.Value) string {
	const reject, throttle = "reject", string(Throttle)
	control, fault := document.ReadChoice(v, []string{reject, throttle})
	algorithm := cmp.Or(r.Algorithm, SlidingWindow)
	switch {
	case fault != "":
		return fault
	case control == "":
		return "is empty: remove the field"
	case control == reject && algorithm == Throttle:
		return fmt.Sprintf("is %q, but algorithm is %q: remove control", control, algorithm)
	case control == throttle && algorithm != SlidingWindow && algorithm != Throttle:
		return fmt.Sprintf("is %q, but algorithm is %q: remove control, or set algorithm to %q", control, algorithm, throttle)
	case control == throttle:
		r.Algorithm = Throttle
	}
	return ""
}

// examples are rules that have every field between them.
func examples() []rule.Example[Rule] {
	return []rule.Example[Rule]{
		example("A limit: what comes beyond it is refused.",
			"name resource limit window algorithm buckets strict shadow",
			Rule{Name: "create-qps", Resource: "orders:create", Limit: 1000}),
		example("Even spacing: calls wait for their turn. A cold cache warms up first.",
			"resource limit algorithm maxWait warmUp.period warmUp.coldFactor warmUp.step", Rule{
				Resource: "reports:render", Limit: 5, Algorithm: Throttle, MaxWait: 500 * time.Millisecond,
				WarmUp: WarmUp{Period: 10 * time.Second},
			}),
		example("Tokens of a model: who asks for too many waits behind himself; gold gets twice as many as another tenant.",
			"name resource limit algorithm maxWait fairBy weights weightBy newcomers mask", Rule{
				Name: "model-tokens", Resource: "model:answer", Limit: 50_000, Algorithm: TokenBucket,
				MaxWait: 20 * time.Second, FairBy: rule.StringsOf("tenant"),
				Weights: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("gold"), Value: 2}),
				Mask:    rule.MaskHash,
			}),
		example("A bucket for each resource of the administration, and for one kind of callers.",
			"match except perResource limit algorithm burst overdraft origin", Rule{
				Match: "admin:*", Except: rule.StringsOf("admin:login", "admin:help:*"), Limit: 5,
				Algorithm: TokenBucket, Burst: 20, Origin: "mobile",
			}),
		example("Less and less passes while 70 to 90 % of the memory is in use.",
			"name resource limit follow.signal follow.from follow.to follow.least", Rule{
				Name: "imports", Resource: "orders:import", Limit: 200,
				Follow: Follow{Signal: rule.SignalMemory, From: 0.7, To: 0.9, Least: 20},
			}),
		example("A quota of a partner: all instances of the service together keep to it.",
			"name resource limit scope fleet.mode fleet.onOutage", Rule{
				Name: "partner-quota", Resource: "partners:call", Limit: 10000, Scope: rule.ScopeFleet,
				Fleet: rule.Fleet{Mode: fleet.ModeWindow},
			}),
		example("A contract: a million calls a month, by the days of Berlin. The log warns when 80 % are used.",
			"name resource limit window timeZone startsAt warnAt", Rule{
				Name: "contract", Resource: "partners:search", Limit: 1_000_000,
				Calendar: rule.Calendar{Period: calendar.Period{Count: 1, Unit: calendar.Month}, TimeZone: "Europe/Berlin", StartsAt: "2026-01-17"},
				WarnAt:   0.8,
			}),
		example("A balance that is bought: nothing passes before somebody adds tokens, and nothing flows back.",
			"name resource limit algorithm scope",
			Rule{Name: "prepaid-exports", Resource: "exports:make", Algorithm: Prepaid, Scope: rule.ScopeFleet}),
		example("What is over the rate passes as the first to be shed, when an adaptive rule has to.",
			"name resource limit onExceed",
			Rule{Name: "committed-rate", Resource: "orders:search", Limit: 100, OnExceed: rule.ExceedDemote}),
		example("At most 100 answers a minute that cost something: calls that fail count for nothing.",
			"name resource limit window counts", Rule{
				Name: "paid-answers", Resource: "maps:route", Limit: 100, Window: time.Minute,
				Counts: rule.CountsSuccesses,
			}),
		example("Reads give way to writes.",
			"name resource limit related",
			Rule{Name: "reads-yield", Resource: "orders:read", Limit: 50, Related: "orders:write"}),
	}
}

// example returns an example that shows the fields, whose names have spaces between them.
func example(about, fields string, r Rule) rule.Example[Rule] {
	return rule.Example[Rule]{About: about, Rule: r, Fields: strings.Fields(fields)}
}

// newFleetLimiter returns the limiter of a rule of the fleet that counts nothing yet.
func newFleetLimiter(r *Rule, env rule.Env) rule.Limiter {
	v := newFleetVersion(r, &env)
	switch v.mode {
	case fleet.ModeAsk:
		return newAskLimiter(v, &env)
	case fleet.ModeShare:
		return newShareLimiter(v, &env)
	}
	return newLeasedLimit(v, &env).limiter(v)
}

// adoptFleet returns the limiter of a changed rule of the fleet, which goes on with what the
// present one shares; nil if that is shared in another way, or no more.
func adoptFleet(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	before, ok := present.(fleetLimiter)
	if !ok {
		return nil
	}
	v := newFleetVersion(r, &env)
	if from := before.fleetVersion(); from.mode != v.mode || from.terms.Key != v.terms.Key {
		return nil
	}
	return before.adopted(v, &env)
}
