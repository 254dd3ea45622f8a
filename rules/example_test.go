package rules_test

import (
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/rules"
)

func ExampleParse() {
	set, err := rules.Parse("limits.yaml", []byte(`
flow:
  - resource: orders:create
    limit: 1000

  - name: pay-evenly
    resource: orders:pay
    limit: 5
    algorithm: throttle
    maxWait: 500ms
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rule := range set.Flow {
		at, _ := set.Position(rules.KindFlow, rule.Name)
		fmt.Printf("%v: %s lets %v pass in %v\n", at, rule.Name, rule.Limit, rule.Window)
	}
	// Output:
	// limits.yaml:3:5: orders:create lets 1000 pass in 1s
	// limits.yaml:6:5: pay-evenly lets 5 pass in 1s
}

// Every mistake is reported at once.
func ExampleParse_mistakes() {
	_, err := rules.Parse("limits.yaml", []byte(`
flow:
  - name: create
    resource: orders:create
    limit: -3
    window: 10

  - resource: orders:pay
    limt: 5
    algorithm: thottle
`))
	fmt.Println(err)
	// Output:
	// rules: limits.yaml:5:12: flow rule "create": limit is -3: must be from 0 (blocks all) to 1000000000 tokens per window
	// rules: limits.yaml:6:13: flow rule "create": window is 10: write a duration with a unit, such as "500ms" or "1s", or days, weeks or months, such as "1d" or "3mo"
	// rules: limits.yaml:9:5: flow rule "orders:pay": unknown field "limt": did you mean "limit"?
	// rules: limits.yaml:10:16: flow rule "orders:pay": algorithm is "thottle": did you mean "throttle"?
}

// A tool that shows mistakes in its own way takes them one by one.
func ExampleProblems() {
	_, err := rules.Parse("limits.json", []byte(`{"flow": [{"resource": "orders:create", "limit": "100"}]}`))
	var problems rules.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			fmt.Printf("line %d, %s of %s %s\n", p.Line, p.Field, p.Rule, p.Message)
		}
	}
	// Output:
	// line 1, limit of orders:create is "100": must be a number, such as 100 or 2.5; remove the quotes
}

// Rules of several documents make one set, if no name is taken twice.
func ExampleMerge() {
	shop, _ := rules.Parse("shop.yaml", []byte(`flow: [{resource: orders, limit: 10}]`))
	admin, _ := rules.Parse("admin.yaml", []byte(`flow: [{resource: orders, limit: 20}]`))
	_, err := rules.Merge(shop, admin)
	fmt.Println(err)
	// Output:
	// rules: admin.yaml:1:8: flow rule "orders": name is taken by the rule at shop.yaml:1:8: give one of them another (the default is the resource)
}

// What a push would change.
func ExampleDiff() {
	inForce, _ := rules.Parse("old.yaml", []byte(`
flow:
  - {resource: orders:create, limit: 1000}
  - {resource: orders:pay, limit: 5, algorithm: throttle}
`))
	next, _ := rules.Parse("new.yaml", []byte(`
flow:
  - {resource: orders:pay, limit: 10, algorithm: throttle, maxWait: 500ms}
  - {match: "admin:*", limit: 2, shadow: true}
`))
	for _, d := range rules.Diff(inForce, next) {
		fmt.Println(d)
	}
	// Output:
	// flow rule "admin:*" added: match admin:*, limit 2, shadow true
	// flow rule "orders:pay" changed: limit 5 -> 10, maxWait none -> 500ms
	// flow rule "orders:create" removed: resource orders:create, limit 1000
}

func ExampleSet_YAML() {
	set, _ := rules.Parse("limits.json", []byte(`{"flow": [{"resource": "orders", "limit": 10, "window": "1s"}]}`))
	document, err := set.YAML()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(document))
	// Output:
	// flow:
	//   - resource: orders
	//     limit: 10
}
