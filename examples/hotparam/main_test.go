package main

import (
	"fmt"
	"os"
)

// Honest users lose nothing, and the attacker is out after three seconds.
func Example() {
	if err := run(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	//         honest users     attacker
	// second  passed refused   passed refused
	//      0      50       0       39      61
	//      1      50       0       20      80
	//      2      50       0       15      85
	//      3      50       0        0     100
	//      4      50       0        0     100
	//      5      50       0        0     100
	//      6      50       0        0     100
	//      7      50       0        0     100
	//      8      50       0        0     100
	//      9      50       0        0     100
	//
	// The hottest values of rule "per-address" on POST:/orders:
	// 203.0.113.66     74 passed  926 refused
	// 198.51.100.0     50 passed    0 refused
	// 198.51.100.1     50 passed    0 refused
}
