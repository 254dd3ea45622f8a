package flow_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/rule"
)

// ofFleet makes a rule one for the whole fleet.
func ofFleet(r flow.Rule, mode fleet.Mode) flow.Rule {
	r.Scope, r.Fleet.Mode = rule.ScopeFleet, mode
	return r
}

func fixedWindow(limit float64) flow.Rule {
	return flow.Rule{Resource: "r", Limit: limit, Algorithm: flow.FixedWindow}
}

func TestFleetRulesHaveTheModeOfTheirAlgorithmByDefault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule flow.Rule
		mode fleet.Mode
	}{
		{reject(5), fleet.ModeLease},
		{bucket(5, 5), fleet.ModeLease},
		{throttle(5, time.Second), fleet.ModeLease},
		{fixedWindow(5), fleet.ModeWindow},
	} {
		complete := flow.Kind().WithDefaults(ofFleet(test.rule, ""))
		assert.Equal(t, rule.Fleet{Mode: test.mode, OnOutage: fleet.OutageLast}, complete.Fleet, test.rule.Algorithm)
		assert.Empty(t, flow.Kind().Faults(complete))
		assert.Equal(t, complete, flow.Kind().WithDefaults(complete))
	}
}

func TestScopeInstanceIsTheSameAsNone(t *testing.T) {
	t.Parallel()
	written := reject(5)
	written.Scope = rule.ScopeInstance
	assert.Equal(t, flow.Kind().WithDefaults(reject(5)), flow.Kind().WithDefaults(written))
	assert.Empty(t, flow.Kind().Faults(written))
}

func TestEachAlgorithmHasItsModes(t *testing.T) {
	t.Parallel()
	lease, window, ask, share := fleet.ModeLease, fleet.ModeWindow, fleet.ModeAsk, fleet.ModeShare
	for _, test := range []struct {
		rule  flow.Rule
		sound []fleet.Mode
	}{
		{reject(5), []fleet.Mode{lease, window, ask, share}},
		{fixedWindow(5), []fleet.Mode{window, ask, share}},
		{bucket(5, 5), []fleet.Mode{lease, ask, share}},
		{throttle(5, time.Second), []fleet.Mode{lease, ask, share}},
	} {
		for _, mode := range []fleet.Mode{lease, window, ask, share} {
			faults := flow.Kind().Faults(ofFleet(test.rule, mode))
			if assert.Equal(t, !slices.Contains(test.sound, mode), len(faults) > 0, "%s %s: %v", test.rule.Algorithm, mode, faults) &&
				len(faults) > 0 {
				assert.Equal(t, "fleet.mode", faults[0].Field)
			}
		}
	}
}

func TestMistakesInFleetRulesSayWhatToDo(t *testing.T) {
	t.Parallel()
	local := func(change func(*flow.Rule)) flow.Rule {
		r := ofFleet(reject(5), fleet.ModeLease)
		change(&r)
		return r
	}
	tests := map[string]struct {
		rule flow.Rule
		want []rule.Fault
	}{
		"a scope that is not known": {
			local(func(r *flow.Rule) { r.Scope = "cluster" }),
			[]rule.Fault{{Field: "scope", Message: `is "cluster": must be "instance" or "fleet"`}},
		},
		"a mode that is not known": {
			local(func(r *flow.Rule) { r.Fleet.Mode = "vote" }),
			[]rule.Fault{{Field: "fleet.mode", Message: `is "vote": must be "lease", "window", "ask" or "share"`}},
		},
		"a behaviour in an outage that is not known": {
			local(func(r *flow.Rule) { r.Fleet.OnOutage = "panic" }),
			[]rule.Fault{{Field: "fleet.onOutage", Message: `is "panic": must be "last", "share", "open" or "closed"`}},
		},
		"fleet fields without the scope": {
			local(func(r *flow.Rule) { r.Scope, r.Fleet.OnOutage = "", fleet.OutageOpen }),
			[]rule.Fault{
				{Field: "fleet.mode", Message: `has no effect without scope "fleet": remove it, or add scope: fleet`},
				{Field: "fleet.onOutage", Message: `has no effect without scope "fleet": remove it, or add scope: fleet`},
			},
		},
		"a lease of a fixed window": {
			ofFleet(fixedWindow(5), fleet.ModeLease),
			[]rule.Fault{{Field: "fleet.mode", Message: `is "lease", which shares a bucket: with algorithm "fixedWindow" set it to ` +
				`"window" or "ask", or set algorithm to "slidingWindow"`}},
		},
		"a window of a bucket": {
			ofFleet(bucket(5, 5), fleet.ModeWindow),
			[]rule.Fault{{Field: "fleet.mode", Message: `is "window", which shares a window: with algorithm "tokenBucket" set it to ` +
				`"lease", "ask" or "share"`}},
		},
		"strict":  {local(func(r *flow.Rule) { r.Strict = true }), []rule.Fault{{Field: "strict", Message: onlyShare}}},
		"related": {local(func(r *flow.Rule) { r.Related = "s" }), []rule.Fault{{Field: "related", Message: onlyShare}}},
		"warm-up": {
			local(func(r *flow.Rule) { r.WarmUp.Period = time.Minute }),
			[]rule.Fault{{Field: "warmUp.period", Message: onlyShare}},
		},
		"a signal": {
			memory(ofFleet(reject(5), fleet.ModeAsk), 2),
			[]rule.Fault{{Field: "follow.signal", Message: onlyShare}},
		},
		"less than a token": {
			local(func(r *flow.Rule) { r.Limit, r.Fleet.Mode = 0.5, fleet.ModeAsk }),
			[]rule.Fault{{
				Field:   "limit",
				Message: `is 0.5: with fleet.mode "ask" must be a whole number of tokens: for a fraction, lengthen the window`,
			}},
		},
		"overdraft": {
			local(func(r *flow.Rule) { r.Algorithm, r.Overdraft = flow.TokenBucket, true }),
			[]rule.Fault{{Field: "overdraft", Message: onlyShare}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, flow.Kind().Faults(test.rule))
		})
	}
}

const onlyShare = `has no effect with scope "fleet" unless fleet.mode is "share": remove it, or set that`

func TestRulesThatShareMayHaveAllFields(t *testing.T) {
	t.Parallel()
	strict := reject(5)
	strict.Strict, strict.Related, strict.WarmUp.Period = true, "s", time.Minute
	for _, r := range []flow.Rule{strict, overdraft(5, 5), memory(throttle(5, time.Second), 2)} {
		require.Empty(t, flow.Kind().Faults(ofFleet(r, fleet.ModeShare)))
	}
}

// A window of the calendar is asked for: any other mode is one mistake, which says so and names no other mode.
func TestACalendarWindowOfTheFleetHasOneModeOnly(t *testing.T) {
	t.Parallel()
	period, ok := calendar.ParsePeriod("1mo")
	require.True(t, ok)
	month := rule.Calendar{Period: period}
	for _, mode := range []fleet.Mode{fleet.ModeLease, fleet.ModeWindow, fleet.ModeShare} {
		r := ofFleet(flow.Rule{Resource: "r", Limit: 5, Calendar: month}, mode)
		faults := flow.Kind().Faults(r)
		require.Len(t, faults, 1, mode)
		assert.Equal(t, "fleet.mode", faults[0].Field)
		assert.Contains(t, faults[0].Message, `instances share such a limit by "ask"`)
	}
	r := ofFleet(flow.Rule{Resource: "r", Limit: 5, Calendar: month}, fleet.ModeAsk)
	assert.Empty(t, flow.Kind().Faults(r))
	r.Limit = 5.5
	assert.Len(t, flow.Kind().Faults(r), 1)
	r.Limit, r.Related = 5, "other"
	assert.NotEmpty(t, flow.Kind().Faults(r))
}
