package flow_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

func TestWithDefaultsOfOtherAlgorithms(t *testing.T) {
	t.Parallel()
	warm := flow.WarmUp{Period: time.Minute}
	tests := map[string]struct{ rule, want flow.Rule }{
		"a pattern is the name": {
			flow.Rule{Match: "orders:*", Limit: 5},
			flow.Rule{
				Name: "orders:*", Match: "orders:*", Limit: 5, Window: time.Second,
				Algorithm: flow.SlidingWindow, Buckets: 10,
			},
		},
		"fixed window": {
			flow.Rule{Resource: "r", Limit: 5, Algorithm: flow.FixedWindow, WarmUp: warm},
			flow.Rule{
				Name: "r", Resource: "r", Limit: 5, Window: time.Second, Algorithm: flow.FixedWindow,
				WarmUp: flow.WarmUp{Period: time.Minute, ColdFactor: 3, Step: time.Second},
			},
		},
		"token bucket": {
			flow.Rule{Resource: "r", Limit: 5.5, Algorithm: flow.TokenBucket},
			flow.Rule{
				Name: "r", Resource: "r", Limit: 5.5, Burst: 5.5, Window: time.Second,
				Algorithm: flow.TokenBucket,
			},
		},
		"token bucket of a small limit": {
			flow.Rule{Resource: "r", Limit: 0.5, Algorithm: flow.TokenBucket},
			flow.Rule{
				Name: "r", Resource: "r", Limit: 0.5, Burst: 1, Window: time.Second,
				Algorithm: flow.TokenBucket,
			},
		},
		"token bucket that warms up": {
			flow.Rule{Resource: "r", Limit: 5, Algorithm: flow.TokenBucket, WarmUp: warm},
			flow.Rule{
				Name: "r", Resource: "r", Limit: 5, Window: time.Second, Algorithm: flow.TokenBucket,
				WarmUp: flow.WarmUp{Period: time.Minute, ColdFactor: 3},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := flow.Kind().WithDefaults(test.rule)
			assert.Equal(t, test.want, got)
			assert.Equal(t, got, flow.Kind().WithDefaults(got), "what is complete stays as it is")
			assert.Empty(t, flow.Kind().Faults(got))
		})
	}
}

func TestValidateFindsFieldsThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	sliding := flow.Rule{Resource: "r", Limit: 5}
	fixed := flow.Rule{Resource: "r", Limit: 5, Algorithm: flow.FixedWindow}
	bucket := flow.Rule{Resource: "r", Limit: 5, Algorithm: flow.TokenBucket}
	queue := flow.Rule{Resource: "r", Limit: 5, Algorithm: flow.Throttle}
	pattern := flow.Rule{Match: "orders:*", Limit: 5}
	warming := flow.Rule{Resource: "r", Limit: 5, Algorithm: flow.TokenBucket, WarmUp: flow.WarmUp{Period: time.Minute}}
	tests := map[string]struct {
		rule   flow.Rule
		change func(r *flow.Rule)
		fields []string // of the faults
	}{
		"resource and match": {pattern, func(r *flow.Rule) { r.Resource = "r" }, []string{"match"}},
		"bad pattern":        {pattern, func(r *flow.Rule) { r.Match = "orders:[" }, []string{"match"}},
		"bad expression":     {pattern, func(r *flow.Rule) { r.Match = "~(" }, []string{"match"}},
		"shared":             {pattern, func(r *flow.Rule) { r.Shared = true }, nil},
		"shared of one":      {sliding, func(r *flow.Rule) { r.Shared = true }, []string{"perResource"}},

		"throttled by name": {sliding, func(r *flow.Rule) { r.Algorithm = flow.Throttle }, nil},

		"fixed shortest":    {fixed, func(r *flow.Rule) { r.Window = time.Millisecond }, nil},
		"fixed too short":   {fixed, func(r *flow.Rule) { r.Window = time.Millisecond - 1 }, []string{"window"}},
		"fixed longest":     {fixed, func(r *flow.Rule) { r.Window = 24 * time.Hour }, nil},
		"fixed too long":    {fixed, func(r *flow.Rule) { r.Window = 24*time.Hour + 1 }, []string{"window"}},
		"fixed odd":         {fixed, func(r *flow.Rule) { r.Window = 7*time.Second + 1 }, nil},
		"bucket shortest":   {bucket, func(r *flow.Rule) { r.Window = time.Millisecond }, nil},
		"bucket too short":  {bucket, func(r *flow.Rule) { r.Window = time.Millisecond - 1 }, []string{"window"}},
		"throttle shortest": {queue, func(r *flow.Rule) { r.Window = time.Millisecond }, nil},
		"sliding too short": {sliding, func(r *flow.Rule) { r.Window = time.Millisecond }, []string{"window"}},

		"fixed with buckets":  {fixed, func(r *flow.Rule) { r.Buckets = 1 }, []string{"buckets"}},
		"fixed and strict":    {fixed, func(r *flow.Rule) { r.Strict = true }, []string{"strict"}},
		"bucket with buckets": {bucket, func(r *flow.Rule) { r.Buckets = 10 }, []string{"buckets"}},
		"bucket and strict":   {bucket, func(r *flow.Rule) { r.Strict = true }, []string{"strict"}},

		"fixed that waits":   {fixed, func(r *flow.Rule) { r.MaxWait = 1 }, []string{"maxWait"}},
		"bucket that waits":  {bucket, func(r *flow.Rule) { r.MaxWait = 24 * time.Hour }, nil},
		"bucket that hangs":  {bucket, func(r *flow.Rule) { r.MaxWait = 24*time.Hour + 1 }, []string{"maxWait"}},
		"bucket, wait below": {bucket, func(r *flow.Rule) { r.MaxWait = -1 }, []string{"maxWait"}},

		"burst":                  {bucket, func(r *flow.Rule) { r.Burst = 2.5 }, nil},
		"burst largest":          {bucket, func(r *flow.Rule) { r.Burst = 1e9 }, nil},
		"burst too large":        {bucket, func(r *flow.Rule) { r.Burst = 1e9 + 1 }, []string{"burst"}},
		"burst negative":         {bucket, func(r *flow.Rule) { r.Burst = -1 }, []string{"burst"}},
		"burst not numeric":      {bucket, func(r *flow.Rule) { r.Burst = math.NaN() }, []string{"burst"}},
		"burst infinite":         {bucket, func(r *flow.Rule) { r.Burst = math.Inf(1) }, []string{"burst"}},
		"burst below one":        {bucket, func(r *flow.Rule) { r.Burst = 0.9 }, []string{"burst"}},
		"burst with overdraft":   {bucket, func(r *flow.Rule) { r.Burst = 0.9; r.Overdraft = true }, nil},
		"burst of sliding":       {sliding, func(r *flow.Rule) { r.Burst = 5 }, []string{"burst"}},
		"burst of fixed":         {fixed, func(r *flow.Rule) { r.Burst = 5 }, []string{"burst"}},
		"burst of throttle":      {queue, func(r *flow.Rule) { r.Burst = 5 }, []string{"burst"}},
		"burst with warm-up":     {warming, func(r *flow.Rule) { r.Burst = 5 }, []string{"burst"}},
		"limit not numeric":      {bucket, func(r *flow.Rule) { r.Limit = math.NaN() }, []string{"limit"}},
		"limit infinite":         {bucket, func(r *flow.Rule) { r.Limit = math.Inf(1) }, []string{"limit"}},
		"overdraft of sliding":   {sliding, func(r *flow.Rule) { r.Overdraft = true }, []string{"overdraft"}},
		"overdraft of fixed":     {fixed, func(r *flow.Rule) { r.Overdraft = true }, []string{"overdraft"}},
		"overdraft of throttle":  {queue, func(r *flow.Rule) { r.Overdraft = true }, []string{"overdraft"}},
		"overdraft with warm-up": {warming, func(r *flow.Rule) { r.Overdraft = true }, nil},

		"warm-up of fixed":    {fixed, func(r *flow.Rule) { r.WarmUp.Period = time.Minute }, nil},
		"step of fixed":       {fixed, func(r *flow.Rule) { r.WarmUp = flow.WarmUp{Period: time.Minute, Step: time.Minute} }, nil},
		"step of bucket":      {warming, func(r *flow.Rule) { r.WarmUp.Step = time.Second }, []string{"warmUp.step"}},
		"bucket, cold at 1":   {warming, func(r *flow.Rule) { r.WarmUp.ColdFactor = 1 }, []string{"warmUp.coldFactor"}},
		"bucket, no period":   {bucket, func(r *flow.Rule) { r.WarmUp.ColdFactor = 3 }, []string{"warmUp.period"}},
		"bucket, long period": {warming, func(r *flow.Rule) { r.WarmUp.Period = 24*time.Hour + 1 }, []string{"warmUp.period"}},

		"related":             {sliding, func(r *flow.Rule) { r.Related = "s" }, nil},
		"related to itself":   {sliding, func(r *flow.Rule) { r.Related = "r" }, []string{"related"}},
		"related to others":   {sliding, func(r *flow.Rule) { r.Related = rule.OtherResources }, []string{"related"}},
		"related of fixed":    {fixed, func(r *flow.Rule) { r.Related = "s" }, nil},
		"related of bucket":   {bucket, func(r *flow.Rule) { r.Related = "s" }, []string{"related"}},
		"related of throttle": {queue, func(r *flow.Rule) { r.Related = "s" }, []string{"related"}},
		"related of many":     {pattern, func(r *flow.Rule) { r.Related = "s" }, nil},

		"origin and shadow": {bucket, func(r *flow.Rule) { r.Origin = rule.OtherOrigins; r.Shadow = true }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rule := test.rule
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

func TestFaultsOfAlgorithmsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]flow.Rule{
		`is "orders:[", character 8: the class is not closed: end it with ], or write \[ for the character itself`: {Match: "orders:["},
		`stands beside resource "r": a rule has one or the other; remove one`:                                      {Resource: "r", Match: "*"},
		`has no effect with algorithm "fixedWindow": remove it`:                                                    {Resource: "r", Algorithm: flow.FixedWindow, Buckets: 10},
		`is 0.5: no call could ever pass; make it at least 1, or set overdraft to true`:                            {Resource: "r", Algorithm: flow.TokenBucket, Burst: 0.5},
		`has no effect with warmUp, which says what the bucket holds: remove one of them`: {
			Resource: "r", Algorithm: flow.TokenBucket, Burst: 5, WarmUp: flow.WarmUp{Period: time.Minute},
		},
		`is "leaky": must be "slidingWindow", "fixedWindow", "tokenBucket", "throttle" or "prepaid"`: {Resource: "r", Algorithm: "leaky"},
		`has no effect on a window: remove it, or set algorithm to "throttle" or "tokenBucket"`:      {Resource: "r", MaxWait: 1},
		`has no effect with algorithm "throttle": remove it or set algorithm to "tokenBucket"`:       {Resource: "r", Algorithm: flow.Throttle, Burst: 5},
		`has no effect with algorithm "throttle", which cannot count what passes elsewhere: remove it or use a window`: {
			Resource: "r", Algorithm: flow.Throttle, Related: "s",
		},
	} {
		faults := flow.Kind().Faults(rule)
		if assert.Len(t, faults, 1, want) {
			assert.Equal(t, want, faults[0].Message)
		}
	}
}
