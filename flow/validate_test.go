package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestWithDefaultsFillsIn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ rule, want flow.Rule }{
		"a bare rule": {
			flow.Rule{Resource: "r", Limit: 5},
			flow.Rule{
				Name: "r", Resource: "r", Limit: 5, Window: time.Second,
				Algorithm: flow.SlidingWindow, Buckets: 10,
			},
		},
		"throttle has no buckets": {
			flow.Rule{Resource: "r", Algorithm: flow.Throttle},
			flow.Rule{
				Name: "r", Resource: "r", Window: time.Second,
				Algorithm: flow.Throttle,
			},
		},
		"a warm-up that is on": {
			flow.Rule{Resource: "r", Algorithm: flow.Throttle, WarmUp: flow.WarmUp{Period: time.Minute}},
			flow.Rule{
				Name: "r", Resource: "r", Window: time.Second, Algorithm: flow.Throttle,
				WarmUp: flow.WarmUp{Period: time.Minute, ColdFactor: 3, Step: time.Second},
			},
		},
		"the shortest window": {
			flow.Rule{Resource: "r", Window: 10 * time.Millisecond},
			flow.Rule{
				Name: "r", Resource: "r", Window: 10 * time.Millisecond,
				Algorithm: flow.SlidingWindow, Buckets: 10,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := test.rule
			got := flow.Kind().WithDefaults(test.rule)
			assert.Equal(t, test.want, got)
			assert.Equal(t, before, test.rule, "the receiver stays as it is")
			assert.Equal(t, got, flow.Kind().WithDefaults(got), "what is complete stays as it is")
			assert.Empty(t, flow.Kind().Faults(got))
		})
	}
}

func TestWithDefaultsLeavesWhatIsSet(t *testing.T) {
	t.Parallel()
	rule := flow.Rule{
		Name: "n", Resource: "r", Limit: 2.5, Window: time.Minute, Algorithm: flow.SlidingWindow, Buckets: 6,
		Strict: true,
		WarmUp: flow.WarmUp{Period: time.Minute, ColdFactor: 2, Step: 100 * time.Millisecond},
	}
	assert.Equal(t, rule, flow.Kind().WithDefaults(rule))
	assert.Empty(t, flow.Kind().Faults(rule))
}

func TestValidateFindsFaults(t *testing.T) {
	t.Parallel()
	type change func(r *flow.Rule)
	throttled := func(more change) change {
		return func(r *flow.Rule) {
			r.Algorithm = flow.Throttle
			more(r)
		}
	}
	warming := func(more func(w *flow.WarmUp)) change {
		return func(r *flow.Rule) {
			r.WarmUp = flow.WarmUp{Period: time.Minute}
			more(&r.WarmUp)
		}
	}
	tests := map[string]struct {
		change change
		fields []string // of the faults
	}{
		"none":        {func(*flow.Rule) {}, nil},
		"no resource": {func(r *flow.Rule) { r.Resource = "" }, []string{"resource"}},
		"no name":     {func(r *flow.Rule) { r.Name = "" }, nil},

		"limit zero":        {func(r *flow.Rule) { r.Limit = 0 }, nil},
		"limit fractional":  {func(r *flow.Rule) { r.Limit = 0.001 }, nil},
		"limit largest":     {func(r *flow.Rule) { r.Limit = 1e9 }, nil},
		"limit too large":   {func(r *flow.Rule) { r.Limit = 1e9 + 1 }, []string{"limit"}},
		"limit negative":    {func(r *flow.Rule) { r.Limit = -0.001 }, []string{"limit"}},
		"limit not numeric": {func(r *flow.Rule) { r.Limit = math.NaN() }, []string{"limit"}},
		"limit infinite":    {func(r *flow.Rule) { r.Limit = math.Inf(1) }, []string{"limit"}},
		"limit −infinite":   {func(r *flow.Rule) { r.Limit = math.Inf(-1) }, []string{"limit"}},

		"window shortest":  {func(r *flow.Rule) { r.Window = 10 * time.Millisecond }, nil},
		"window too short": {func(r *flow.Rule) { r.Window = 10*time.Millisecond - 10; r.Buckets = 1 }, []string{"window"}},
		"window longest":   {func(r *flow.Rule) { r.Window = 24 * time.Hour }, nil},
		"window too long":  {func(r *flow.Rule) { r.Window = 24*time.Hour + 10 }, []string{"window"}},
		"window negative":  {func(r *flow.Rule) { r.Window = -time.Second }, []string{"window"}},

		"algorithm":         {func(r *flow.Rule) { r.Algorithm = "slidingWindow" }, nil},
		"algorithm unknown": {func(r *flow.Rule) { r.Algorithm = "SlidingWindow" }, []string{"algorithm"}},

		"buckets fewest":      {func(r *flow.Rule) { r.Buckets = 1 }, nil},
		"buckets negative":    {func(r *flow.Rule) { r.Buckets = -1 }, []string{"buckets"}},
		"buckets most":        {func(r *flow.Rule) { r.Buckets = 1000 }, nil},
		"buckets too many":    {func(r *flow.Rule) { r.Buckets = 1001; r.Window = 1001 * time.Second }, []string{"buckets"}},
		"buckets too short":   {func(r *flow.Rule) { r.Buckets = 200; r.Window = 100 * time.Millisecond }, []string{"buckets"}},
		"buckets not evenly":  {func(r *flow.Rule) { r.Buckets = 7 }, []string{"buckets"}},
		"buckets of throttle": {throttled(func(r *flow.Rule) { r.Buckets = 10 }), []string{"buckets"}},
		"strict":              {func(r *flow.Rule) { r.Strict = true }, nil},
		"strict of throttle":  {throttled(func(r *flow.Rule) { r.Strict = true }), []string{"strict"}},
		"wait of a window":    {func(r *flow.Rule) { r.MaxWait = time.Second }, []string{"maxWait"}},
		"wait":                {throttled(func(r *flow.Rule) { r.MaxWait = time.Second }), nil},
		"wait longest":        {throttled(func(r *flow.Rule) { r.MaxWait = 24 * time.Hour }), nil},
		"wait too long":       {throttled(func(r *flow.Rule) { r.MaxWait = 24*time.Hour + 1 }), []string{"maxWait"}},
		"wait negative":       {throttled(func(r *flow.Rule) { r.MaxWait = -1 }), []string{"maxWait"}},
		"warm-up":             {warming(func(*flow.WarmUp) {}), nil},
		"warm-up of throttle": {throttled(warming(func(*flow.WarmUp) {})), nil},
		"period longest":      {warming(func(w *flow.WarmUp) { w.Period = 24 * time.Hour }), nil},
		"period too long":     {warming(func(w *flow.WarmUp) { w.Period = 24*time.Hour + 1 }), []string{"warmUp.period"}},
		"period negative":     {warming(func(w *flow.WarmUp) { w.Period = -1 }), []string{"warmUp.period"}},
		"factor alone":        {func(r *flow.Rule) { r.WarmUp.ColdFactor = 3 }, []string{"warmUp.period"}},
		"step alone":          {func(r *flow.Rule) { r.WarmUp.Step = time.Second }, []string{"warmUp.period"}},
		"factor smallest":     {warming(func(w *flow.WarmUp) { w.ColdFactor = 1.1 }), nil},
		"factor one":          {warming(func(w *flow.WarmUp) { w.ColdFactor = 1 }), []string{"warmUp.coldFactor"}},
		"factor negative":     {warming(func(w *flow.WarmUp) { w.ColdFactor = -3 }), []string{"warmUp.coldFactor"}},
		"factor not numeric":  {warming(func(w *flow.WarmUp) { w.ColdFactor = math.NaN() }), []string{"warmUp.coldFactor"}},
		"factor infinite":     {warming(func(w *flow.WarmUp) { w.ColdFactor = math.Inf(1) }), []string{"warmUp.coldFactor"}},
		"step shortest":       {warming(func(w *flow.WarmUp) { w.Step = 10 * time.Millisecond }), nil},
		"step too short":      {warming(func(w *flow.WarmUp) { w.Step = 10*time.Millisecond - 1 }), []string{"warmUp.step"}},
		"step longest":        {warming(func(w *flow.WarmUp) { w.Step = time.Minute }), nil},
		"step too long":       {warming(func(w *flow.WarmUp) { w.Step = time.Minute + 1 }), []string{"warmUp.step"}},
		"step negative":       {warming(func(w *flow.WarmUp) { w.Step = -time.Second }), []string{"warmUp.step"}},
		"many at once, in the order of the fields": {
			func(r *flow.Rule) {
				*r = flow.Rule{Limit: -1, Window: -1, Algorithm: "x", WarmUp: flow.WarmUp{Period: -1, ColdFactor: 1, Step: 1}}
			},
			[]string{"resource", "limit", "window", "algorithm", "warmUp.period", "warmUp.coldFactor", "warmUp.step"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := flow.Rule{Name: "n", Resource: "r", Limit: 5}
			test.change(&rule)
			var fields []string
			for _, fault := range flow.Kind().Faults(rule) {
				assert.NotEmpty(t, fault.Message, fault.Field)
				fields = append(fields, fault.Field)
			}
			assert.Equal(t, test.fields, fields, "%v", flow.Kind().Faults(rule))
		})
	}
}

func TestFaultsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for field, test := range map[string]struct {
		rule flow.Rule
		want string
	}{
		"resource":  {flow.Rule{}, "is missing: name the resource that the rule guards, or write a pattern in match"},
		"limit":     {flow.Rule{Resource: "r", Limit: -1}, "is -1: must be from 0 (blocks all) to 1000000000 tokens per window"},
		"algorithm": {flow.Rule{Resource: "r", Algorithm: "wait"}, `is "wait": must be "slidingWindow", "fixedWindow", "tokenBucket", "throttle" or "prepaid"`},
		"buckets":   {flow.Rule{Resource: "r", Buckets: 7}, "is 7: does not part a window of 1s evenly; choose a divisor"},
	} {
		assert.Equal(t, []rule.Fault{{Field: field, Message: test.want}}, flow.Kind().Faults(test.rule))
	}
}
