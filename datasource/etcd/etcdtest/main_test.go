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
// so more of them run at once than there are processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
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
