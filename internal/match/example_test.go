package match_test

import (
	"fmt"

	"github.com/penstock-go/penstock/internal/match"
)

func ExampleCompile() {
	pattern, err := match.Compile("orders:*")
	fmt.Println(pattern.Matches("orders:create"), pattern.Matches("payments:create"), err)
	// Output: true false <nil>
}

func ExampleCompile_mistake() {
	_, err := match.Compile("orders:[a-z")
	fmt.Println(err)
	// Output: match: pattern "orders:[a-z", character 8: the class is not closed: end it with ], or write \[ for the character itself
}
