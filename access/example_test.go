package access_test

import (
	"fmt"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// The company's network may call, but not its guests. What is no address may not.
func ExampleKind() {
	r := access.Rule{Resource: "admin:users", Allow: rule.StringsOf("10.0.0.0/8"), Deny: rule.StringsOf("10.9.0.0/16")}
	limiter := access.Kind().Of(r).WithDefaults().NewLimiter(rule.Env{Version: 1, Lists: list.NewRegistry()})
	for _, address := range []string{"10.1.2.3", "10.9.1.1", "192.0.2.7", "unknown"} {
		_, decision := limiter.Acquire(rule.Call{Tokens: 1, Attribute: rule.String(address)})
		fmt.Println(address, decision == rule.Pass)
	}
	// Output:
	// 10.1.2.3 true
	// 10.9.1.1 false
	// 192.0.2.7 false
	// unknown false
}
