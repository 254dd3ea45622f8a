package settings

import (
	"math"

	"github.com/penstock-go/penstock/rule"
)

// OnExceedField returns the field onExceed, of kinds whose rules can demote calls.
func OnExceedField[R any](at func(*R) *rule.OnExceed) rule.Field[R] {
	return rule.ChoiceField("onExceed", at, rule.ExceedRefuse, rule.ExceedDemote).
		Accepts(string(rule.ExceedRefuse), "").Given("algorithm", "maxWait").
		Says("refuse, or demote: calls over the limit pass with the lowest priority, so that other rules refuse them first").
		Otherwise(string(rule.ExceedRefuse))
}

// ValidateOnExceed judges the field of a rule, of which waits says that calls wait for it; "" if none
// do.
func ValidateOnExceed(f *rule.Faults, does rule.OnExceed, waits string) {
	switch does {
	case "", rule.ExceedRefuse:
	case rule.ExceedDemote:
		if waits != "" {
			f.Add("onExceed", "is %q, but calls wait for such a rule: %s, or remove onExceed", does, waits)
		}
	default:
		f.Add("onExceed", "is %q: must be %q or %q", does, rule.ExceedRefuse, rule.ExceedDemote)
	}
}

// WarnAtField returns the field warnAt, of kinds whose rules warn when most of a window is used.
func WarnAtField[R any](at func(*R) *float64) rule.Field[R] {
	return rule.FieldOf("warnAt", at).Given("algorithm", "scope").
		Says("windows: the share of the limit, such as 0.8, from which on the log warns, once in a window").Otherwise("never")
}

// ValidateWarnAt judges the field of a rule. obstacle says what to change so that it is known how much
// of a window is used; "" if it is.
func ValidateWarnAt(f *rule.Faults, share float64, obstacle string) {
	switch {
	case share == 0:
	case !rule.Within(share, 0, 1) || share < 0:
		f.Add("warnAt", "is %v: must be greater than 0 and at most 1, a share of the limit", share)
	case obstacle != "":
		f.Add("warnAt", "is %v, but it is not known how much of such a limit is used: %s, or remove warnAt", share, obstacle)
	}
}

// WarnFrom returns how many tokens of a limit are used when a rule with that share has to warn.
func WarnFrom(share, limit float64) int64 { return max(1, int64(math.Ceil(share*limit-1e-6))) }
