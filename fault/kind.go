package fault

import (
	"time"

	"github.com/penstock-go/penstock/rule"
)

// Kind returns faults as a kind of rule, which documents describe in a list "fault".
func Kind() *rule.Type[Rule] {
	return rule.Define(rule.Spec[Rule]{
		Kind:     "fault",
		Phase:    rule.PhaseFault,
		Reason:   rule.Injected,
		Common:   common,
		Fields:   fields(),
		Examples: examples(),
		Defaults: withDefaults,
		Validate: validate,
		New:      newLimiter,
		Adopt:    adopt,
		Ends:     func(r *Rule) time.Time { return r.Until },
		Answer:   func(r *Rule) rule.Answer { return rule.Answer(r.Abort) },
		Gauges: []rule.Gauge{
			{Name: "delayed", Help: "Calls in an injected delay."},
			{Name: "injected", Help: "Calls that were delayed or refused.", Counter: true},
			{Name: "not_delayed", Help: "Calls that were chosen and not delayed, for too many were in a delay.", Counter: true},
		},
		States:   []string{Active, Ended, Off},
		Controls: []string{Off},
	})
}

func common(r *Rule) rule.Common {
	return rule.Common{
		Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Except: &r.Except, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
	}
}

func fields() []rule.Field[Rule] {
	return []rule.Field[Rule]{
		rule.FieldOf("percent", func(r *Rule) *float64 { return &r.Percent }).
			Required("is missing: write how many of 100 calls the fault is for, such as 5").
			Says("how many of 100 calls are chosen, at random; may be fractional"),
		rule.FieldOf("delay", func(r *Rule) *time.Duration { return &r.Delay }).Given("abort.http", "abort.grpc").
			NotZero("leave it out, or delay calls by at least 1ms").
			Says("how long a chosen call is delayed").Otherwise("no delay; then abort is required"),
		rule.FieldOf("abort.http", func(r *Rule) *int { return &r.Abort.HTTP }).
			NotZero("must be the status of an error, from 400 to 599").
			Says("chosen calls are refused, after the delay, and answered over HTTP with this status").
			Otherwise("not refused; 503 if abort.grpc is given"),
		rule.ChoiceField("abort.grpc", func(r *Rule) *string { return &r.Abort.GRPC }, codes()...).
			Says("… and over gRPC with this code").Otherwise("not refused; UNAVAILABLE if abort.http is given"),
		rule.FieldOf("until", func(r *Rule) *time.Time { return &r.Until }).Required(missingUntil).
			Says("when the rule ends: from then on it injects nothing"),
	}
}

func examples() []rule.Example[Rule] {
	until := time.Date(2030, time.June, 1, 0, 0, 0, 0, time.UTC)
	return []rule.Example[Rule]{{
		About:  "What if 5 % of the payments were slow?",
		Rule:   Rule{Name: "slow-payments", Resource: "pay:charge", Percent: 5, Delay: 200 * time.Millisecond, Until: until},
		Fields: []string{"name", "resource", "percent", "delay", "until", "shadow"},
	}, {
		About: "What if the searches of one caller failed now and then?",
		Rule: Rule{
			Match: "search:*", Except: rule.StringsOf("search:health"), Percent: 0.5, Abort: Abort{HTTP: 503, GRPC: "UNAVAILABLE"}, Until: until, Origin: "mobile",
		},
		Fields: []string{"match", "except", "perResource", "percent", "abort.http", "abort.grpc", "until", "origin"},
	}}
}
