package etcdtest_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/internal/longtest"
)

// TestMain fails if goroutines are left. After a cluster has ended, the connections
// between its members take up to five seconds to close. Properties are tried fifteen times, or for as long
// as faults are injected if tests are to do all that they can.
func TestMain(m *testing.M) {
	longtest.AtOnce(6)
	if err := flag.Set("rapid.checks", longtest.Of("15", "1000")); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 {
		code = awaitQuiet()
	}
	os.Exit(code)
}

func awaitQuiet() (code int) {
	var left error
	for end := time.Now().Add(eventTimeout); time.Now().Before(end); {
		if left = goleak.Find(); left == nil {
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, left)
	return 1
}
