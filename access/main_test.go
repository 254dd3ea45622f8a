package access_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

const epoch = clock.Instant(1_700_000_040 * int64(time.Second))

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a rule on a resource, with lists.
type service struct {
	t       testingT
	lists   *list.Registry
	rule    rule.Rule
	limiter rule.Limiter
	version uint64
	changes []string // that were reported
}

func newService(t testingT, r access.Rule) *service {
	t.Helper()
	s := &service{t: t, lists: list.NewRegistry(), version: 1}
	s.use(r)
	s.limiter = s.rule.NewLimiter(s.env())
	s.activate()
	return s
}

func (s *service) use(r access.Rule) {
	s.t.Helper()
	require.Empty(s.t, access.Kind().Faults(r))
	s.rule = access.Kind().Of(access.Kind().WithDefaults(r))
}

func (s *service) env() rule.Env {
	return rule.Env{Version: s.version, Now: epoch, Lists: s.lists, Changed: s.changed}
}

func (s *service) changed(_ clock.Instant, from, to, _ string) {
	s.changes = append(s.changes, from+" to "+to)
}

func (s *service) activate() { s.limiter.(rule.Activator).Activate(epoch) }

// reload puts another version of the rule in force.
func (s *service) reload(r access.Rule) {
	s.t.Helper()
	s.version++
	s.use(r)
	s.limiter = s.rule.Adopt(s.limiter, s.env())
	s.activate()
}

// set gives a list entries.
func (s *service) set(name string, entries ...string) {
	s.t.Helper()
	s.lists.Set(name, listOf(s.t, entries...))
}

func listOf(t require.TestingT, entries ...string) *list.List {
	var b list.Builder
	for _, entry := range entries {
		require.NoError(t, b.Add(entry))
	}
	l, err := b.Build(context.Background())
	require.NoError(t, err)
	return l
}

// decides says what the limiter decides on a call with an attribute.
func decides(l rule.Limiter, a rule.Attribute) rule.Decision {
	_, decision := l.Acquire(rule.Call{Now: epoch, Tokens: 1, Attribute: a})
	return decision
}

// pass and refuse make calls with these attributes: texts, numbers, booleans, or nil for
// none.
func (s *service) pass(values ...any)   { s.t.Helper(); s.expect(rule.Pass, 0, values) }
func (s *service) refuse(values ...any) { s.t.Helper(); s.expect(rule.Block, rule.Never, values) }

func (s *service) expect(want rule.Decision, retry time.Duration, values []any) {
	s.t.Helper()
	for _, value := range values {
		a := attribute(value)
		require.Equal(s.t, want, decides(s.limiter, a), "%#v", value)
		require.Equal(s.t, retry, s.limiter.RetryAfter(rule.Call{Now: epoch, Attribute: a}), "%#v", value)
	}
}

func attribute(value any) rule.Attribute {
	switch v := value.(type) {
	case nil:
		return rule.Attribute{}
	case string:
		return rule.String(v)
	case int:
		return rule.Int(int64(v))
	case bool:
		return rule.Bool(v)
	}
	panic(fmt.Sprintf("no attribute: %#v", value))
}

// is asserts the state.
func (s *service) is(state string, entries float64) {
	s.t.Helper()
	status := s.limiter.Status(epoch)
	require.Equal(s.t, state, status.State)
	require.Equal(s.t, []float64{entries}, status.Gauges)
}

// reported asserts the changes of state since the last time.
func (s *service) reported(changes ...string) {
	s.t.Helper()
	require.Equal(s.t, changes, s.changes)
	s.changes = nil
}

// testingT is a test, or one run of a property.
type testingT interface {
	require.TestingT
	Helper()
}
