package kindtest_test

import (
	"testing"
	"time"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rule/kindtest"
)

func TestFlow(t *testing.T) {
	of := flow.Kind().Of
	kindtest.Run(t, kindtest.Options{Kind: flow.Kind(), Rules: []kindtest.Rule{
		{
			Rule: of(flow.Rule{Name: "sliding", Resource: "r", Limit: 10}), Passes: 10, Again: 2 * time.Second,
			Stricter: of(flow.Rule{Name: "sliding", Resource: "r", Limit: 4}),
		},
		{
			Rule:   of(flow.Rule{Name: "fixed", Resource: "r", Limit: 10, Algorithm: flow.FixedWindow, Window: time.Minute}),
			Passes: 10, Again: time.Minute,
			Stricter: of(flow.Rule{Name: "fixed", Resource: "r", Limit: 4, Algorithm: flow.FixedWindow, Window: time.Minute}),
		},
		{
			Rule: of(flow.Rule{Name: "bucket", Resource: "r", Limit: 10, Algorithm: flow.TokenBucket, Burst: 5}), Passes: 5, Again: time.Second,
			Stricter: of(flow.Rule{Name: "bucket", Resource: "r", Limit: 10, Algorithm: flow.TokenBucket, Burst: 2}),
		},
		{
			Rule: of(flow.Rule{Name: "balance", Resource: "r", Limit: 10, Algorithm: flow.Prepaid}), Passes: 10, Again: rule.Never,
			Stricter: of(flow.Rule{Name: "balance", Resource: "r", Limit: 4, Algorithm: flow.Prepaid}),
		},
		{Rule: of(flow.Rule{Name: "pattern", Match: "orders:*", Shared: true}), Resource: "orders:create", Passes: 0, Again: rule.Never},
	}})
}

func TestIsolation(t *testing.T) {
	of := isolation.Kind().Of
	kindtest.Run(t, kindtest.Options{Kind: isolation.Kind(), Rules: []kindtest.Rule{
		{
			Rule: of(isolation.Rule{Name: "pool", Resource: "r", Limit: 8}), Passes: 8,
			Stricter: of(isolation.Rule{Name: "pool", Resource: "r", Limit: 3}),
		},
		{Rule: of(isolation.Rule{Name: "queue", Resource: "r", Limit: 2, MaxWait: time.Minute, MaxQueue: 10}), Passes: 2},
		{
			Rule:   of(isolation.Rule{Name: "shares", Resource: "r", Limit: 2, MaxWait: time.Minute, MaxQueue: 10, FairBy: rule.StringsOf("tenant")}),
			Passes: 2, Lacks: map[string]string{"ValuesAreToldApart": "tenants have one limit together, and shares of it"},
		},
	}})
}

func TestBreaker(t *testing.T) {
	of := breaker.Kind().Of
	kindtest.Run(t, kindtest.Options{Kind: breaker.Kind(), Rules: []kindtest.Rule{{
		Rule: of(breaker.Rule{Resource: "r", Threshold: 0.5}), Passes: kindtest.All,
	}}})
}

func TestHotParam(t *testing.T) {
	of := hotparam.Kind().Of
	user := rule.StringsOf("user")
	lacks := map[string]string{"GivenBackLateFreesNothingOfOthers": "a bucket is one word, which does not tell when its tokens were taken"}
	kindtest.Run(t, kindtest.Options{Kind: hotparam.Kind(), Rules: []kindtest.Rule{
		{
			Rule: of(hotparam.Rule{Name: "bucket", Resource: "r", Param: user, Limit: 10}), Passes: 10, Again: time.Second,
			Stricter: of(hotparam.Rule{Name: "bucket", Resource: "r", Param: user, Limit: 4}), Lacks: lacks,
		},
		{
			Rule:   of(hotparam.Rule{Name: "window", Resource: "r", Param: user, Limit: 10, Algorithm: hotparam.SlidingWindow}),
			Passes: 10, Again: 2 * time.Second,
			Stricter: of(hotparam.Rule{Name: "window", Resource: "r", Param: user, Limit: 4, Algorithm: hotparam.SlidingWindow}),
		},
		{
			Rule: of(hotparam.Rule{Name: "pool", Resource: "r", Param: user, Concurrency: 8}), Passes: 8,
			Stricter: of(hotparam.Rule{Name: "pool", Resource: "r", Param: user, Concurrency: 3}),
		},
		{
			Rule:   of(hotparam.Rule{Name: "aged", Resource: "r", Param: user, Concurrency: 8, MaxAge: 24 * time.Hour}),
			Passes: 8, Stricter: of(hotparam.Rule{Name: "aged", Resource: "r", Param: user, Concurrency: 3, MaxAge: time.Hour}),
		},
		{
			Rule: of(hotparam.Rule{Name: "balance", Resource: "r", Param: user, Limit: 10, Algorithm: hotparam.Prepaid}), Passes: 10, Again: rule.Never,
			Stricter: of(hotparam.Rule{Name: "balance", Resource: "r", Param: user, Limit: 4, Algorithm: hotparam.Prepaid}),
		},
		{Rule: of(hotparam.Rule{Name: "pair", Resource: "r", Param: rule.StringsOf("user", "tenant"), Limit: 5}), Passes: 5, Again: time.Second, Lacks: lacks},
	}})
}

func TestAccess(t *testing.T) {
	of := access.Kind().Of
	lacks := map[string]string{"OlderVersionIsStale": "nothing is counted: a call that began before a change of the rule may be decided by the older version"}
	kindtest.Run(t, kindtest.Options{Kind: access.Kind(), Rules: []kindtest.Rule{
		{Rule: of(access.Rule{Name: "one", Resource: "r", Attribute: "user", Deny: rule.StringsOf("eve")}), Passes: kindtest.All, Lacks: lacks},
		{
			Rule: of(access.Rule{Name: "none", Resource: "r", Attribute: "user", Deny: rule.StringsOf("eve")}), Again: rule.Never,
			Value: func(int) string { return "eve" }, Lacks: lacks,
		},
	}})
}

func TestFault(t *testing.T) {
	of := fault.Kind().Of
	kindtest.Run(t, kindtest.Options{Kind: fault.Kind(), Rules: []kindtest.Rule{
		{Rule: of(fault.Rule{Name: "all", Resource: "r", Percent: 100, Until: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC), Abort: fault.Abort{HTTP: 503}}), Again: rule.Never},
	}})
}

func TestAdaptive(t *testing.T) {
	of := adaptive.Kind().Of
	kindtest.Run(t, kindtest.Options{Kind: adaptive.Kind(), Rules: []kindtest.Rule{
		{Rule: of(adaptive.Rule{Name: "cpu", Resource: "r", Strategy: adaptive.Threshold, CPU: 0.8}), Passes: kindtest.All},
		{Rule: of(adaptive.Rule{Name: "latency", Resource: "r", Strategy: adaptive.Latency}), Passes: 20, Lacks: map[string]string{
			"ValuesAreToldApart":        "calls that differ by their attributes have one limit",
			"LateInstantsLetNoMorePass": "the limit moves as time passes",
		}},
	}})
}
