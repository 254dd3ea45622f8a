package simulate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/simulate"
)

// decideDemotions says which calls are demoted and which are refused, by the textbook: a call is within
// all rules that demote, and counts in each of them, or over one, and counts in none. What a rule
// that refuses lets not pass counts nowhere. All rules are windows or buckets for which no call waits.
func decideDemotions(rules []flow.Rule, offers []offer) (demoted []bool, refusedBy []string) {
	o := &oracle{counters: map[string]counter{}, queues: map[string]*oracleQueue{}}
	for _, r := range rules {
		o.rules = append(o.rules, flow.Kind().WithDefaults(r))
	}
	fits := func(r flow.Rule, call offer) bool {
		if !isQueued(r) {
			return o.counter(r, call.resource).fits(call.at, call.tokens)
		}
		at, ever := o.queue(r, call.resource).schedule.clone().slot(call.at, call.tokens)
		return ever && at <= call.at
	}
	for _, call := range offers {
		var takes []flow.Rule
		isDemoted, refused := false, ""
		for _, r := range o.applying(call) {
			switch isOver := !fits(r, call); {
			case r.OnExceed == rule.ExceedDemote:
				isDemoted = isDemoted || isOver
			case isOver && refused == "":
				refused = r.Name
			}
		}
		for _, r := range o.applying(call) {
			if r.OnExceed != rule.ExceedDemote || !isDemoted {
				takes = append(takes, r)
			}
		}
		for _, r := range takes {
			switch {
			case refused != "":
			case isQueued(r):
				schedule := o.queue(r, call.resource).schedule
				schedule.slot(call.at, call.tokens)
				schedule.grant(call.at, call.tokens)
			default:
				o.counter(r, call.resource).count(call.at, call.tokens)
			}
		}
		demoted, refusedBy = append(demoted, isDemoted), append(refusedBy, refused)
	}
	return demoted, refusedBy
}

func TestDemotionsAreLikeTheOracle(t *testing.T) {
	const span = 4 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		var rules []flow.Rule
		for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
			r := flow.Rule{Name: fmt.Sprint("r", i), Limit: float64(rapid.IntRange(0, 12).Draw(t, "limit"))}
			r.Algorithm = rapid.SampledFrom([]flow.Algorithm{flow.SlidingWindow, flow.FixedWindow}).Draw(t, "algorithm")
			if rapid.Bool().Draw(t, "pattern") {
				r.Match, r.Shared = "*", rapid.Bool().Draw(t, "shared")
			} else {
				r.Resource = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "resource")
			}
			if rapid.IntRange(0, 2).Draw(t, "demotes") > 0 {
				r.OnExceed = rule.ExceedDemote
			}
			rules = append(rules, r)
		}
		load := drawStreams(t, 10, span, []string{"a", "b"}, []string{""})
		offers := offersOf(load, span)
		demoted, refusedBy := decideDemotions(rules, offers)
		for i, e := range run(t, flowRules(rules...), load, span).Events {
			require.Equal(t, refusedBy[i], e.Rule, "call %d %+v", i, offers[i])
			require.Equal(t, demoted[i], e.Demoted, "call %d %+v", i, offers[i])
		}
	})
}

// A bucket that demotes, with times that the clock tells exactly.
func TestBucketsDemoteLikeTheOracle(t *testing.T) {
	rules := []flow.Rule{
		{Name: "bucket", Resource: "a", Limit: 4, Burst: 6, Algorithm: flow.TokenBucket, OnExceed: rule.ExceedDemote},
		{Name: "window", Resource: "a", Limit: 8},
	}
	const span = 8 * time.Second
	load := simulate.Load{Streams: []simulate.Stream{{Resource: "a", Rate: 16}, {Resource: "a", Rate: 2, Tokens: 3, From: time.Second}}}
	demoted, refusedBy := decideDemotions(rules, offersOf(load, span))
	count := 0
	for i, e := range run(t, flowRules(rules...), load, span).Events {
		require.Equal(t, refusedBy[i], e.Rule, "call %d", i)
		require.Equal(t, demoted[i], e.Demoted, "call %d", i)
		if e.Demoted {
			count++
		}
	}
	require.Positive(t, count)
}
