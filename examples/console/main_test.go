package main

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors: they wait more than they compute.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
