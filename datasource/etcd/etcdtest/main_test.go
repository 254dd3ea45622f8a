package etcdtest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain fails when goroutines are left over. Connections between members of a
// cluster that has ended take up to five seconds to notice.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		code = awaitQuiet()
	}
	os.Exit(code)
}

func awaitQuiet() (code int) {
	var left error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if left = goleak.Find(); left == nil {
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, left)
	return 1
}
