package leap_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/longtest"
)

// epoch is the start of a calendar second.
const epoch = clock.Instant(1_700_000_000 * int64(time.Second))

func TestMain(m *testing.M) {
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}
