package command_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets more tests run at once than there are processors: those that are parallel wait more
// than they compute.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
