package hotparam

import (
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

const kindName rule.Kind = "hotParam"

// Kind returns what the engine knows of limits for each value.
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind:        kindName,
		Phase:       rule.PhaseValue,
		Reason:      rule.RateLimited,
		Common:      common,
		Fields:      fields(),
		Former:      []document.FormerField[Rule]{{Path: "control", Now: "algorithm", Read: readControl}},
		Examples:    examples(),
		Defaults:    withDefaults,
		Validate:    validate,
		Attributes:  attributes,
		NamesValues: func(r *Rule) bool { return r.Values.Len() > 0 },
		Fleet:       isOfFleet,
		Places:      func(r *Rule) bool { return r.Concurrency != 0 },
		Counts:      func(r *Rule) rule.Counts { return r.Counts },
		Demotes:     func(r *Rule) bool { return r.OnExceed == rule.ExceedDemote },
		Forbids:     forbids,
		Compile:     func(r *Rule, version uint64) any { return compile(*r, version) },
		New:         newLimiter,
		Adopt:       adopt,
		Gauges:      gauges(),
	})
}

// attributes returns the keys whose values are limited. Of the address of a client, that
// is what identifies the client: with IPv6 it has many addresses.
func attributes(r *Rule) []string {
	keys := slices.Collect(r.Param.All())
	if i := slices.Index(keys, rule.KeyIP); i >= 0 {
		keys[i] = rule.KeyIPPrefix
	}
	return keys
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

// forbids returns the answer to calls without the attribute, if these are refused.
func forbids(r *Rule) rule.Answer {
	if r.Missing == rule.MissingUnauthenticated {
		return rule.Answer{HTTP: 401, GRPC: "UNAUTHENTICATED"}
	}
	return rule.Answer{}
}

func fields() []rule.Field[Rule] {
	own := []rule.Field[Rule]{
		rule.FieldOf("param", func(r *Rule) *rule.Strings { return &r.Param }).
			Required("is missing: write the attribute whose values the rule limits, such as user or ip").
			Says("the attribute whose values are limited, or a list of several for a composite value"),
		rule.FieldOf("limit", func(r *Rule) *float64 { return &r.Limit }).Given("concurrency", "algorithm").
			Required("is missing: write how many tokens each value may take in a window, or concurrency", "concurrency").
			Says("tokens per window and value, a call takes one; 0 blocks all"),
		rule.FieldOf("concurrency", func(r *Rule) *int { return &r.Concurrency }).Given("limit").
			NotZero("must be from 1 to 1000000 calls under way; to block all, write limit: 0").
			Says("instead of a limit: how many calls of a value may be under way at once").Otherwise("limit instead"),
		rule.FieldOf("maxAge", func(r *Rule) *time.Duration { return &r.MaxAge }).Given("concurrency").
			Says("concurrency: how long a call may hold its place: after it the place counts as given back").Otherwise("until the call ends"),
	}
	window := rule.CalendarFields(func(r *Rule) *time.Duration { return &r.Window },
		func(r *Rule) *rule.Calendar { return &r.Calendar }, "algorithm", "concurrency")
	rest := []rule.Field[Rule]{
		rule.ChoiceField("algorithm", func(r *Rule) *Algorithm { return &r.Algorithm }, TokenBucket, SlidingWindow, FixedWindow, Throttle, Prepaid).
			Given("concurrency").
			Says("tokenBucket, slidingWindow, fixedWindow, throttle, which spaces the calls of a value evenly, or prepaid, a balance that is only recharged"),
		rule.FieldOf("burst", func(r *Rule) *float64 { return &r.Burst }).Given("limit", "algorithm", "concurrency").
			Says("tokenBucket: how many tokens a value has at the start and can save").Otherwise("the limit, at least 1"),
		rule.FieldOf("maxWait", func(r *Rule) *time.Duration { return &r.MaxWait }).Given("algorithm", "concurrency").
			Says("throttle: the longest that a call may wait").Otherwise("no waiting"),
		rule.FieldOf("maxValues", func(r *Rule) *int { return &r.MaxValues }).
			Says("how many values have a state of their own; the others share some, which is stricter"),
		rule.FieldOf("values", func(r *Rule) *rule.NumberMap { return &r.Values }).
			Given("param", "limit", "concurrency", "algorithm").
			Says("other limits for some values: exact ones, then patterns in their order").Otherwise("none"),
		rule.FieldOf("penalty.after", func(r *Rule) *int { return &r.Penalty.After }).
			Given("penalty.within", "penalty.for").
			Says("a value that is refused so often is refused outright for a while").Otherwise("off"),
		rule.FieldOf("penalty.within", func(r *Rule) *time.Duration { return &r.Penalty.Within }).
			Given("penalty.after", "penalty.for").
			Says("within this time").Otherwise("required with penalty"),
		rule.FieldOf("penalty.for", func(r *Rule) *time.Duration { return &r.Penalty.For }).
			Given("penalty.after", "penalty.within").
			Says("for so long").Otherwise("required with penalty"),
		rule.ChoiceField("missing", func(r *Rule) *rule.Missing { return &r.Missing }, rule.MissingPass, rule.MissingShare, rule.MissingBlock, rule.MissingUnauthenticated).
			Says("a call without the attribute: pass, share (all of them one limit), block (403) or unauthenticated (401)"),
		settings.OnExceedField(func(r *Rule) *rule.OnExceed { return &r.OnExceed }),
		settings.CountsField(func(r *Rule) *rule.Counts { return &r.Counts }),
		settings.WarnAtField(func(r *Rule) *float64 { return &r.WarnAt }),
		rule.ChoiceField("mask", func(r *Rule) *rule.Mask { return &r.Mask }, rule.MaskHash).
			Says("hash: status shows a hash in place of each value").Otherwise("values are shown"),
	}
	shared := settings.FleetFields(func(r *Rule) *rule.Scope { return &r.Scope }, func(r *Rule) *rule.Fleet { return &r.Fleet })
	return slices.Concat(own, window, rest, shared)
}

// readControl reads the field "control", as flow rules have it: "control: throttle" means
// "algorithm: throttle".
func readControl(r *Rule, v document.Value) string {
	const reject, throttle = "reject", string(Throttle)
	control, fault := document.ReadChoice(v, []string{reject, throttle})
	switch {
	case fault != "":
		return fault
	case control == "":
		return "is empty: remove the field"
	case control == reject && r.Algorithm == Throttle:
		return `is "reject", but algorithm is "throttle": remove control`
	case control == throttle && r.Algorithm != "" && r.Algorithm != Throttle:
		return `is "throttle", but algorithm is "` + string(r.Algorithm) + `": remove control, or set algorithm to "throttle"`
	case control == throttle:
		r.Algorithm = Throttle
	}
	return ""
}

// examples are rules that have every field between them.
func examples() []rule.Example[Rule] {
	return []rule.Example[Rule]{
		example("10 orders a second for each user, 20 at once; who is refused 100 times in a minute is out for 10.",
			"name resource param limit window algorithm burst maxValues values penalty.after penalty.within penalty.for missing shadow", Rule{
				Name: "per-user", Resource: "orders:create", Param: rule.StringsOf("user"), Limit: 10, Burst: 20,
				Values:  rule.NumberMapOf(entry("vip-1", 1000), entry("test-*", 1), entry("banned", 0)),
				Penalty: Penalty{After: 100, Within: time.Minute, For: 10 * time.Minute},
			}),
		example("The calls of a user of a tenant are spaced evenly: they wait up to half a second.",
			"match except perResource param limit algorithm maxWait mask", Rule{
				Match: "reports:*", Except: rule.StringsOf("reports:public:*"),
				Param: rule.StringsOf("tenant", "user"), Limit: 5, Algorithm: Throttle,
				MaxWait: 500 * time.Millisecond, Mask: rule.MaskHash,
			}),
		example("At most 3 calls of an address at once. A place that is held for 5 min is free again.",
			"name resource param concurrency maxAge origin", Rule{
				Name: "per-address", Resource: "reports:render", Param: rule.StringsOf("ip"), Concurrency: 3,
				MaxAge: 5 * time.Minute, Origin: "mobile",
			}),
		example("Five logins of an account in five minutes, on whichever instance they are tried.",
			"name resource param limit window scope fleet.mode fleet.onOutage", Rule{
				Name: "per-account", Resource: "logins:try", Param: rule.StringsOf("account"), Limit: 5,
				Window: 5 * time.Minute, Scope: rule.ScopeFleet, Fleet: rule.Fleet{Mode: fleet.ModeAsk},
			}),
		example("At most 2 exports of a tenant at once, on whichever instances they run.",
			"name resource param concurrency scope", Rule{
				Name: "exports-at-once", Resource: "reports:export", Param: rule.StringsOf("tenant"), Concurrency: 2,
				Scope: rule.ScopeFleet,
			}),
		example("Five failed logins of an account in five minutes; who knows the password logs in as often as he likes.",
			"name resource param limit window algorithm counts", Rule{
				Name: "failed-logins", Resource: "logins:try", Param: rule.StringsOf("account"), Limit: 5,
				Window: 5 * time.Minute, Algorithm: SlidingWindow, Counts: rule.CountsFailures,
			}),
		example("A thousand exports of a tenant a day; the log warns of each tenant that has used 900.",
			"name resource param limit window warnAt", Rule{
				Name: "exports", Resource: "reports:export", Param: rule.StringsOf("tenant"), Limit: 1000,
				Calendar: rule.Calendar{Period: calendar.Period{Count: 1, Unit: calendar.Day}}, WarnAt: 0.9,
			}),
		example("Tokens that tenants have bought: those of whom none has added any have none, and nothing flows back.",
			"name match perResource param limit algorithm missing scope", Rule{
				Name: "credit", Match: "api:*", Shared: true, Param: rule.StringsOf("tenant"), Algorithm: Prepaid,
				Missing: rule.MissingBlock, Scope: rule.ScopeFleet,
			}),
		example("A tenant over its share is served as long as there is room.",
			"name match perResource param limit onExceed", Rule{
				Name: "per-tenant", Match: "api:*", Shared: true, Param: rule.StringsOf("tenant"), Limit: 100,
				OnExceed: rule.ExceedDemote,
			}),
		example("A plan: 100000 calls of a tenant a month, from the 17th on, in all instances together.",
			"name match perResource param limit window timeZone startsAt scope", Rule{
				Name: "plan", Match: "api:*", Shared: true, Param: rule.StringsOf("tenant"), Limit: 100_000,
				Scope: rule.ScopeFleet, Calendar: rule.Calendar{
					Period: calendar.Period{Count: 1, Unit: calendar.Month}, TimeZone: "Europe/Berlin", StartsAt: "2026-01-17",
				},
			}),
	}
}

// example returns an example that shows the fields, whose names have spaces between them.
func example(about, fields string, r Rule) rule.Example[Rule] {
	return rule.Example[Rule]{About: about, Rule: r, Fields: strings.Fields(fields)}
}

func entry(text string, limit float64) rule.NumberEntry {
	return rule.NumberEntry{Key: rule.String(text), Value: limit}
}
