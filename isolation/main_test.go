package isolation_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// epoch is the start of a calendar minute, at which tests begin.
const epoch = clock.Instant(1_700_000_040 * int64(time.Second))

// endless is when a context without a deadline ends.
const endless = clock.Instant(math.MaxInt64)

func TestMain(m *testing.M) {
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}

// limiter is what a limiter of the kind can do.
type limiter interface {
	rule.Queue
	rule.Finisher
	rule.Activator
	rule.Retirer
}

// newLimiter returns a limiter of version 1 of a rule, which has to be sound.
func newLimiter(t require.TestingT, r isolation.Rule) limiter {
	return sound(t, r).NewLimiter(rule.Env{Version: 1, Now: epoch}).(limiter)
}

// adopt returns a limiter of a changed rule that goes on from the present one.
func adopt(t require.TestingT, present limiter, r isolation.Rule, version uint64) limiter {
	next := sound(t, r).Adopt(present, rule.Env{Version: version, Now: epoch})
	require.NotNil(t, next)
	return next.(limiter)
}

func sound(t require.TestingT, r isolation.Rule) rule.Rule {
	require.Empty(t, isolation.Kind().Faults(r))
	return isolation.Kind().Of(r).WithDefaults()
}

// patience is that of a call that begins to wait at epoch and has no deadline.
func patience(wake func()) rule.Patience {
	return rule.Patience{Since: epoch, Until: endless, Wake: wake}
}

// gauges are what Status shows.
type gauges struct{ inFlight, waiting, highest, limit int }

func gaugesOf(l rule.Limiter, now clock.Instant) gauges {
	g := l.Status(now).Gauges
	return gauges{int(g[0]), int(g[1]), int(g[2]), int(g[3])}
}
