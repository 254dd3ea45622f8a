package shed_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

const epoch = clock.Instant(1_700_000_000 * int64(time.Second))

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a threshold and the calls that come to it, on a time that the test moves.
type service struct {
	*shed.Threshold
	now   clock.Instant
	nonce uint64
}

func newService(seed uint64) *service {
	s := &service{Threshold: shed.New(seed), now: epoch}
	s.Start(s.now)
	return s
}

// call asks where a call stands, and counts it as refused if it is below.
func (s *service) call(p rule.Priority, caller string) shed.Standing {
	c := rule.Call{Now: s.now, Tokens: 1}
	if caller != "" {
		c.Attribute = rule.String(caller)
	}
	c.SetCaller(p, true)
	s.nonce++
	standing := s.Standing(s.Load(), &c, s.nonce)
	if standing == shed.Below {
		s.Refuse(p, true)
	}
	return standing
}

// traffic is calls of one priority from callers of numbered names.
type traffic struct {
	priority rule.Priority
	calls    int
	callers  int // 0: callers are not known
}

// passed makes the calls and returns the share of those that are to pass.
func (s *service) passed(t traffic) float64 {
	passed := 0
	for i := range t.calls {
		caller := ""
		if t.callers > 0 {
			caller = fmt.Sprintf("caller-%d", i%t.callers)
		}
		if s.call(t.priority, caller) != shed.Below {
			passed++
		}
	}
	return float64(passed) / float64(t.calls)
}
