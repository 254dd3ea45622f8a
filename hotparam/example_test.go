package hotparam_test

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

func ExampleRule() {
	r := hotparam.Rule{Resource: "orders:create", Param: rule.StringsOf("user"), Limit: 2}
	limiter := hotparam.Kind().Of(r).WithDefaults().NewLimiter(rule.Env{Version: 1})
	for _, user := range []string{"ann", "ann", "ann", "bob"} {
		call := rule.Call{Tokens: 1, Attribute: rule.String(user)}
		_, decision := limiter.Acquire(call)
		fmt.Println(user, decision == rule.Pass, limiter.RetryAfter(call))
	}
	// Output:
	// ann true 0s
	// ann true 500ms
	// ann false 500ms
	// bob true 0s
}

func ExampleKind_faults() {
	r := hotparam.Rule{
		Resource: "orders:create", Param: rule.StringsOf("user"), Limit: -1, MaxWait: time.Second,
		Penalty: hotparam.Penalty{After: 100, Within: time.Minute},
	}
	for _, fault := range hotparam.Kind().Faults(r) {
		fmt.Println(fault.Field, fault.Message)
	}
	// Output:
	// limit is -1: must be from 0 (blocks all) to 1000000000 tokens per window
	// maxWait has no effect with algorithm "tokenBucket": remove it or set algorithm to "throttle"
	// penalty.for is 0s: must be from 1ms to 24h0m0s
}
