package breaker_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

func TestWithDefaultsFillsIn(t *testing.T) {
	t.Parallel()
	full := breaker.Rule{
		Name: "r", Resource: "r", Strategy: breaker.ErrorRatio, Threshold: 0.5, Window: 10 * time.Second, MinCalls: 20,
		OpenFor: 5 * time.Second, MaxOpenFor: 5 * time.Second, Probes: 5, ProbeTimeout: 10 * time.Second,
	}
	count := full
	count.Strategy, count.Threshold, count.MinCalls = breaker.ErrorCount, 7, 1
	follow := full
	follow.Window, follow.ProbeTimeout = time.Minute, time.Minute
	follow.OpenFor, follow.MaxOpenFor = time.Hour, time.Hour
	tests := map[string]struct{ rule, want breaker.Rule }{
		"a bare rule":        {breaker.Rule{Resource: "r", Threshold: 0.5}, full},
		"a number of errors": {breaker.Rule{Resource: "r", Threshold: 7, Strategy: breaker.ErrorCount}, count},
		"what follows others": {
			breaker.Rule{Resource: "r", Threshold: 0.5, Window: time.Minute, OpenFor: time.Hour}, follow,
		},
		"a complete rule": {full, full},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, breaker.Kind().WithDefaults(test.rule))
			assert.Empty(t, breaker.Kind().Faults(test.rule))
		})
	}
}

func TestValidateFindsFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(r *breaker.Rule)
		faults []rule.Fault
	}{
		"no threshold": {
			func(r *breaker.Rule) { r.Threshold = 0 },
			[]rule.Fault{{Field: "threshold", Message: "is 0: must be a share of the calls from 0.001 to 1"}},
		},
		"a share above 1": {
			func(r *breaker.Rule) { r.Threshold = 50 },
			[]rule.Fault{{Field: "threshold", Message: "is 50: must be a share of the calls from 0.001 to 1"}},
		},
		"no number": {
			func(r *breaker.Rule) { r.Threshold = math.NaN() },
			[]rule.Fault{{Field: "threshold", Message: "is NaN: must be a share of the calls from 0.001 to 1"}},
		},
		"half an error": {
			func(r *breaker.Rule) { r.Strategy, r.Threshold = breaker.ErrorCount, 2.5 },
			[]rule.Fault{{
				Field:   "threshold",
				Message: `is 2.5: must be a whole number of calls from 1 to 1000000000 with strategy "errorCount"`,
			}},
		},
		"an unknown strategy": {
			func(r *breaker.Rule) { r.Strategy, r.Threshold = "errors", 50 },
			[]rule.Fault{{Field: "strategy", Message: `is "errors": must be "slowRatio", "errorRatio", "errorCount" or "consecutive"`}},
		},
		"slow, but not how slow": {
			func(r *breaker.Rule) { r.Strategy = breaker.SlowRatio },
			[]rule.Fault{{
				Field: "slowAfter", Message: "is missing: write how long a call may take and not be slow, such as 300ms",
			}},
		},
		"how slow, of no use": {
			func(r *breaker.Rule) { r.SlowAfter = time.Second },
			[]rule.Fault{{
				Field:   "slowAfter",
				Message: `has no effect with strategy "errorRatio": remove it or set strategy to "slowRatio"`,
			}},
		},
		"slow too early": {
			func(r *breaker.Rule) { r.Strategy, r.SlowAfter = breaker.SlowRatio, 1 },
			[]rule.Fault{{Field: "slowAfter", Message: "is 1ns: must be from 1µs to 24h0m0s"}},
		},
		"a window that has no ten equal buckets": {
			func(r *breaker.Rule) { r.Window = time.Second + 1 },
			[]rule.Fault{{
				Field: "window", Message: "is 1.000000001s: must be a multiple of 10ns, for it has 10 equal buckets",
			}},
		},
		"a window that is too short": {
			func(r *breaker.Rule) { r.Window = 9 * ms },
			[]rule.Fault{{Field: "window", Message: "is 9ms: must be from 10ms to 24h0m0s"}},
		},
		"openFor doubles down": {
			func(r *breaker.Rule) { r.MaxOpenFor = time.Second },
			[]rule.Fault{{
				Field:   "maxOpenFor",
				Message: "is 1s: must be at least openFor, 5s; leave it out for an openFor that does not grow",
			}},
		},
		"all others": {
			func(r *breaker.Rule) {
				r.MinCalls, r.OpenFor, r.MaxOpenFor, r.Probes, r.ProbeTimeout = -1, -time.Second, 48*time.Hour, 1001, 1
			},
			[]rule.Fault{
				{Field: "minCalls", Message: "is -1: must be from 1 to 1000000000"},
				{Field: "openFor", Message: "is -1s: must be from 1ms to 24h0m0s"},
				{Field: "maxOpenFor", Message: "is 48h0m0s: must be from 1ms to 24h0m0s"},
				{Field: "probes", Message: "is 1001: must be from 1 to 1000"},
				{Field: "probeTimeout", Message: "is 1ns: must be from 1ms to 24h0m0s"},
			},
		},
		"no fault is said twice": {
			func(r *breaker.Rule) { r.Window, r.OpenFor = 48*time.Hour, 48*time.Hour },
			[]rule.Fault{
				{Field: "window", Message: "is 48h0m0s: must be from 10ms to 24h0m0s"},
				{Field: "openFor", Message: "is 48h0m0s: must be from 1ms to 24h0m0s"},
			},
		},
		"what every kind has": {
			func(r *breaker.Rule) { r.Resource, r.Shared = "", true },
			[]rule.Fault{
				{Field: "resource", Message: "is missing: name the resource that the rule guards, or write a pattern in match"},
				{Field: "perResource", Message: "has no effect without match: remove it"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := breaker.Rule{Resource: "r", Threshold: 0.5}
			test.change(&r)
			assert.Equal(t, test.faults, breaker.Kind().Faults(r))
		})
	}
}

func TestValidateAllowsTheEndsOfAllRanges(t *testing.T) {
	t.Parallel()
	least := breaker.Rule{
		Resource: "r", Strategy: breaker.SlowRatio, Threshold: breaker.MinRatio, SlowAfter: breaker.MinSlowAfter,
		Window: breaker.MinWindow, MinCalls: 1, OpenFor: breaker.MinOpenFor, Probes: 1, ProbeTimeout: breaker.MinProbeTimeout,
	}
	assert.Empty(t, breaker.Kind().Faults(least))
	most := breaker.Rule{
		Resource: "r", Strategy: breaker.ErrorCount, Threshold: breaker.MaxCalls, Window: breaker.MaxDuration,
		MinCalls: breaker.MaxCalls, OpenFor: breaker.MaxDuration, MaxOpenFor: breaker.MaxDuration, Probes: breaker.MaxProbes,
		ProbeTimeout: breaker.MaxDuration,
	}
	assert.Empty(t, breaker.Kind().Faults(most))
	most.Strategy, most.Threshold, most.SlowAfter = breaker.SlowRatio, 1, breaker.MaxDuration
	assert.Empty(t, breaker.Kind().Faults(most))
}

// Thresholds with as many digits as a number can have fit the arithmetic.
func TestEveryThresholdWorks(t *testing.T) {
	t.Parallel()
	for _, threshold := range []float64{
		breaker.MinRatio, math.Nextafter(breaker.MinRatio, 1), 0.0012345678901234567, 0.1 + 0.2, 2.0 / 3, math.Nextafter(1, 0),
	} {
		s := newService(t, breaker.Rule{Resource: "r", Threshold: threshold, MinCalls: 1})
		s.good(2)
		s.is(breaker.Closed, 2, 0)
		s = newService(t, breaker.Rule{Resource: "r", Threshold: threshold, MinCalls: 1})
		s.bad(1)
		s.is(breaker.Open, 0, 0)
	}
}

func TestDocumentsCanSayEveryField(t *testing.T) {
	t.Parallel()
	written := map[string]document.Value{
		"name":         {Type: document.Text, Text: "n"},
		"resource":     {Type: document.Text, Text: "r"},
		"match":        {Type: document.Text, Text: "m*"},
		"except":       {Type: document.List, Items: []document.Value{{Type: document.Text, Text: "mx"}}},
		"perResource":  {Type: document.Boolean, Text: "false"},
		"strategy":     {Type: document.Text, Text: "slowRatio"},
		"threshold":    {Type: document.Number, Text: "0.25"},
		"slowAfter":    {Type: document.Text, Text: "300ms"},
		"window":       {Type: document.Text, Text: "1m"},
		"minCalls":     {Type: document.Number, Text: "7"},
		"openFor":      {Type: document.Text, Text: "2s"},
		"maxOpenFor":   {Type: document.Text, Text: "8s"},
		"probes":       {Type: document.Number, Text: "3"},
		"probeTimeout": {Type: document.Text, Text: "4s"},

		"probeThreshold": {Type: document.Number, Text: "0.5"},
		"origin":         {Type: document.Text, Text: "o"},
		"shadow":         {Type: document.Boolean, Text: "true"},
	}
	draft := breaker.Kind().Draft()
	for _, field := range breaker.Kind().Fields() {
		require.Contains(t, written, field.Path)
		assert.NotEmpty(t, field.About, field.Path)
		assert.Empty(t, draft.Set(field.Path, written[field.Path]))
		assert.Equal(t, written[field.Path], draft.Get(field.Path))
	}
	require.Len(t, breaker.Kind().Fields(), len(written))
	assert.Equal(t, breaker.Rule{
		Name: "n", Resource: "r", Match: "m*", Except: rule.StringsOf("mx"), Shared: true, Strategy: breaker.SlowRatio, Threshold: 0.25,
		SlowAfter: 300 * ms, Window: time.Minute, MinCalls: 7, OpenFor: 2 * time.Second, MaxOpenFor: 8 * time.Second, Probes: 3,
		ProbeThreshold: 0.5, ProbeTimeout: 4 * time.Second, Origin: "o", Shadow: true,
	}, draft.Value())
	assert.Equal(t, `is "slow": did you mean "slowRatio"?`, draft.Set("strategy", document.Value{Type: document.Text, Text: "slow"}))
}

func TestExamplesShowEveryField(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, example := range breaker.Kind().Examples() {
		assert.Empty(t, example.Rule.Faults())
		assert.NotEmpty(t, example.About)
		for _, field := range example.Fields {
			shown[field] = true
		}
	}
	for _, field := range breaker.Kind().Fields() {
		assert.True(t, shown[field.Path], field.Path)
	}
}

func TestKindTellsWhatItIs(t *testing.T) {
	t.Parallel()
	kind := breaker.Kind()
	assert.Equal(t, rule.Kind("breaker"), kind.Kind())
	assert.Equal(t, rule.PhaseHealth, kind.Phase())
	assert.Equal(t, rule.Unavailable, kind.Reason())
	assert.Equal(t, []string{"closed", "open", "halfOpen"}, kind.States())
	assert.True(t, slices.Equal([]string{"closed", "open"}, kind.Controls()))
}
