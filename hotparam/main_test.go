package hotparam_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
)

// epoch is the start of a calendar minute, at which tests begin.
const epoch = clock.Instant(1_700_000_040 * int64(time.Second))

func TestMain(m *testing.M) {
	longtest.ShortChecks(20)
	goleak.VerifyTestMain(m)
}

// service is a rule and the calls that it limits, on a time that the test moves.
type service struct {
	t interface {
		Helper()
		Errorf(format string, args ...any)
		FailNow()
	}
	rule    hotparam.Rule
	present rule.Rule
	limiter rule.Limiter
	version uint64
	seed    uint64
	now     clock.Instant
}

func newService(t *testing.T, r hotparam.Rule) *service {
	s := &service{t: t, now: epoch, seed: 1}
	s.start(r)
	return s
}

// start makes the first limiter of a rule.
func (s *service) start(r hotparam.Rule) {
	require.Empty(s.t, hotparam.Kind().Faults(r))
	s.version++
	s.rule, s.present = r, hotparam.Kind().Of(r).WithDefaults()
	s.limiter = s.present.NewLimiter(s.env())
}

func (s *service) env() rule.Env {
	return rule.Env{Version: s.version, Now: s.now, Seed: s.seed, Changed: func(clock.Instant, string, string, string) {}}
}

// another returns the limiter of another resource of the rule.
func (s *service) another() *service {
	other := *s
	other.limiter = s.present.NewLimiter(s.env())
	return &other
}

// reload changes the rule. It says whether the limiter goes on from the present one.
func (s *service) reload(change func(*hotparam.Rule)) (adopted bool) {
	change(&s.rule)
	require.Empty(s.t, hotparam.Kind().Faults(s.rule))
	s.version++
	s.present = hotparam.Kind().Of(s.rule).WithDefaults()
	next := s.present.Adopt(s.limiter, s.env())
	if adopted = next != nil; !adopted {
		next = s.present.NewLimiter(s.env())
		if retirer, ok := s.limiter.(rule.Retirer); ok {
			retirer.Retire(s.now)
		}
	}
	s.limiter = next
	if activator, ok := next.(rule.Activator); ok {
		activator.Activate(s.now)
	}
	return adopted
}

// at moves the time to so long after the epoch.
func (s *service) at(d time.Duration) { s.now = epoch.Add(d) }

func (s *service) call(value rule.Attribute, tokens int32) rule.Call {
	return rule.Call{Now: s.now, Tokens: tokens, Attribute: value}
}

// ask makes a call of one token.
func (s *service) ask(value rule.Attribute) rule.Decision {
	_, decision := s.limiter.Acquire(s.call(value, 1))
	return decision
}

// passes makes calls of one token until one does not pass, and returns how many did.
func (s *service) passes(value rule.Attribute) (count int) {
	for ; s.ask(value) == rule.Pass; count++ {
		if count > 1_000_000 {
			s.t.Errorf("calls pass without end")
			s.t.FailNow()
		}
	}
	return count
}

func (s *service) retryAfter(value rule.Attribute) time.Duration {
	return s.limiter.RetryAfter(s.call(value, 1))
}

func user(name string) rule.Attribute { return rule.String(name) }

// composite returns a value of several attributes.
func composite(parts ...rule.Attribute) rule.Attribute {
	var all [rule.MaxKeys]rule.Attribute
	copy(all[:], parts)
	return rule.Composite(&all, len(parts))
}
