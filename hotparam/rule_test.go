package hotparam_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

func text(key string, limit float64) rule.NumberEntry {
	return rule.NumberEntry{Key: rule.String(key), Value: limit}
}

func number(key int64, limit float64) rule.NumberEntry {
	return rule.NumberEntry{Key: rule.Int(key), Value: limit}
}

func perUser(change func(*hotparam.Rule)) hotparam.Rule {
	r := hotparam.Rule{Name: "per-user", Resource: "orders", Param: rule.StringsOf("user"), Limit: 10}
	if change != nil {
		change(&r)
	}
	return r
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	rate := hotparam.Kind().WithDefaults(perUser(nil))
	assert.Equal(t, time.Second, rate.Window)
	assert.Equal(t, hotparam.TokenBucket, rate.Algorithm)
	assert.InDelta(t, 10, rate.Burst, 0)
	assert.Equal(t, 100_000, rate.MaxValues)
	assert.Equal(t, rule.MissingPass, rate.Missing)

	slow := hotparam.Kind().WithDefaults(perUser(func(r *hotparam.Rule) { r.Limit = 0.5 }))
	assert.InDelta(t, 1, slow.Burst, 0, "a call of one token can pass")

	throttle := hotparam.Kind().WithDefaults(perUser(func(r *hotparam.Rule) { r.Algorithm = hotparam.Throttle }))
	assert.Zero(t, throttle.Burst)

	concurrency := hotparam.Kind().WithDefaults(perUser(func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, 3 }))
	assert.Zero(t, concurrency.Window)
	assert.Empty(t, concurrency.Algorithm)
}

func TestValidateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	composite := func(r *hotparam.Rule) { r.Param = rule.StringsOf("tenant", "user") }
	for _, c := range []struct {
		name   string
		change func(*hotparam.Rule)
		want   []string // each the beginning of a fault
	}{
		{"sound", nil, nil},
		{"no param", func(r *hotparam.Rule) { r.Param = rule.Strings{} }, []string{"param is missing: write the attribute"}},
		{"empty param", func(r *hotparam.Rule) { r.Param = rule.StringsOf("") }, []string{`param has a key "": name an attribute`}},
		{"param twice", func(r *hotparam.Rule) { r.Param = rule.StringsOf("a", "a") }, []string{`param has "a" twice: remove one`}},
		{"too many params", func(r *hotparam.Rule) { r.Param = rule.StringsOf("a", "b", "c", "d", "e") }, []string{"param has 5 keys: must have at most 4"}},
		{"negative limit", func(r *hotparam.Rule) { r.Limit = -1 }, []string{"limit is -1: must be from 0 (blocks all)"}},
		{"NaN limit", func(r *hotparam.Rule) { r.Limit = math.NaN() }, []string{"limit is NaN: must be from 0"}},
		{"tiny limit", func(r *hotparam.Rule) { r.Limit = 1e-9 }, []string{"limit is 1e-09: must be 0 (blocks all) or at least 0.000001"}},
		{"limit that lasts too long", func(r *hotparam.Rule) { r.Limit, r.Window = 1e-6, time.Hour }, []string{"limit is too small for its window and burst"}},
		{"fractional window", func(r *hotparam.Rule) { r.Limit, r.Algorithm = 2.5, hotparam.SlidingWindow }, []string{"limit is 2.5: must be a whole number with algorithm"}},
		{"short window", func(r *hotparam.Rule) { r.Window = time.Microsecond }, []string{"window is 1µs: must be from 1ms to 24h0m0s"}},
		{"uneven window", func(r *hotparam.Rule) { r.Algorithm, r.Window = hotparam.SlidingWindow, time.Second+1 }, []string{"window is 1.000000001s: must be a multiple of 10ns"}},
		{"unknown algorithm", func(r *hotparam.Rule) { r.Algorithm = "leaky" }, []string{`algorithm is "leaky": must be "tokenBucket", "slidingWindow", "fixedWindow", "throttle" or "prepaid"`}},
		{"small burst", func(r *hotparam.Rule) { r.Burst = 0.5 }, []string{"burst is 0.5: must be from 1 to"}},
		{"burst of a throttle", func(r *hotparam.Rule) { r.Algorithm, r.Burst = hotparam.Throttle, 2 }, []string{`burst has no effect with algorithm "throttle"`}},
		{"wait of a bucket", func(r *hotparam.Rule) { r.MaxWait = time.Second }, []string{`maxWait has no effect with algorithm "tokenBucket": remove it or set algorithm to "throttle"`}},
		{"negative wait", func(r *hotparam.Rule) { r.Algorithm, r.MaxWait = hotparam.Throttle, -1 }, []string{"maxWait is -1ns: must be from 0s"}},
		{"both limits", func(r *hotparam.Rule) { r.Concurrency = 3 }, []string{"limit stands beside concurrency"}},
		{"concurrency with the fields of rates", func(r *hotparam.Rule) {
			r.Limit, r.Concurrency, r.Window, r.Algorithm, r.Burst, r.MaxWait = 0, 3, 1, hotparam.Throttle, 1, 1
		}, []string{"window has no effect beside", "algorithm has no effect", "burst has no effect", "maxWait has no effect"}},
		{"negative concurrency", func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, -1 }, []string{"concurrency is -1: must be from 1 to 1000000"}},
		{"few values", func(r *hotparam.Rule) { r.MaxValues = 99 }, []string{"maxValues is 99: must be from 100 to 10000000"}},
		{"unknown missing", func(r *hotparam.Rule) { r.Missing = "fail" }, []string{`missing is "fail": must be "pass", "share", "block" or "unauthenticated"`}},
		{"unknown mask", func(r *hotparam.Rule) { r.Mask = "stars" }, []string{`mask is "stars": must be "hash"`}},
		{"a part of a penalty", func(r *hotparam.Rule) { r.Penalty.After = 3 }, []string{"penalty.within is 0s: must be from 10ms", "penalty.for is 0s: must be from 1ms"}},
		{"penalty without a number", func(r *hotparam.Rule) { r.Penalty = hotparam.Penalty{Within: time.Second, For: time.Second} }, []string{"penalty.after is 0: must be from 1"}},
		{"limits of values", func(r *hotparam.Rule) { r.Values = rule.NumberMapOf(text("a", -1), text("b", 1e10)) }, []string{
			`values gives "a" the limit -1: must be from 0`, `values gives "b" the limit 1e+10: must be from 0`,
		}},
		{"bad pattern", func(r *hotparam.Rule) { r.Values = rule.NumberMapOf(text("a[", 1)) }, []string{`values has a key "a[" that "a[", character 2`}},
		{"a key that is nothing", func(r *hotparam.Rule) { r.Values = rule.NumberMapOf(rule.NumberEntry{Value: 1}) }, []string{"values has a key  that is no value"}},
		{"a number twice", func(r *hotparam.Rule) {
			r.Values = rule.NumberMapOf(number(7, 1), number(7, 2))
		}, []string{"values has a key 7 that stands there twice"}},
		{"composite key with one part", func(r *hotparam.Rule) { composite(r); r.Values = rule.NumberMapOf(text("a", 1)) }, []string{`values has a key "a" that must have 2 parts`}},
		{"composite key with an empty part", func(r *hotparam.Rule) { composite(r); r.Values = rule.NumberMapOf(text("a/", 1)) }, []string{`values has a key "a/" that "" is empty`}},
		{"too many limits", func(r *hotparam.Rule) {
			entries := make([]rule.NumberEntry, 33)
			for i := range entries {
				entries[i] = text(strings.Repeat("a", i+1), float64(i+100))
			}
			r.Values = rule.NumberMapOf(entries...)
		}, []string{"values has 33 different limits: must have at most 31"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			faults := hotparam.Kind().Faults(perUser(c.change))
			var got []string
			for _, f := range faults {
				got = append(got, f.Field+" "+f.Message)
			}
			require.Len(t, got, len(c.want), "%v", got)
			for i, want := range c.want {
				assert.True(t, strings.HasPrefix(got[i], want), "want %s\ngot  %s", want, got[i])
			}
		})
	}
}
