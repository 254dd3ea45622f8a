package etcdtest_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain fails if goroutines are left. After a cluster has ended, the connections
// between its members take up to five seconds to close. Tests wait more than they compute,
// so more of them run at once than there are processors. Properties are tried fifteen times,
// or for as long as faults are injected if PENSTOCK_LONG is set.
func TestMain(m *testing.M) {
	checks := "15"
	if os.Getenv("PENSTOCK_LONG") != "" {
		checks = "1000"
	}
	for name, value := range map[string]string{"test.parallel": "6", "rapid.checks": checks} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
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
