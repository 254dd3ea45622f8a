package main

import (
	"fmt"
	"os"
)

func Example() {
	if err := run(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// The list has 192.0.2.0/24.
	//   192.0.2.10     403 Forbidden
	//   198.51.100.20  200 OK
	//   203.0.113.7    200 OK
	// It is replaced by 198.51.100.0/24 and 203.0.113.7.
	//   192.0.2.10     200 OK
	//   198.51.100.20  403 Forbidden
	//   203.0.113.7    403 Forbidden
	// It is replaced by 203.0.113.300.
	//   the last good list stays: list: line 1: "203.0.113.300" is no address: IPv4 field has value >255; put it in quotes if it is a text
	//   192.0.2.10     200 OK
	//   198.51.100.20  403 Forbidden
	//   203.0.113.7    403 Forbidden
}
