package penstock_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// listed is a kind of rule of the tests: it refuses the calls of users in a list.
type listed struct {
	Name, Resource, Match, Origin string
	Shared, Shadow                bool
	List                          string
}

func listedKind() *rule.Type[listed] {
	common := func(r *listed) rule.Common {
		return rule.Common{
			Name: &r.Name, Resource: &r.Resource, Match: &r.Match, Shared: &r.Shared, Origin: &r.Origin, Shadow: &r.Shadow,
		}
	}
	return rule.Define(rule.Spec[listed]{
		Kind: "listed", Phase: rule.PhaseAccess, Reason: rule.Denied, Common: common,
		Fields: slices.Concat(rule.TargetFields(common), []rule.Field[listed]{
			rule.TextField("list", func(r *listed) *string { return &r.List }),
		}, rule.ScopeFields(common)),
		Attributes: func(listed) []string { return []string{"user"} },
		Lists: func(r listed) []string {
			if r.List == "" {
				return nil
			}
			return []string{r.List}
		},
		New: func(r listed, env rule.Env) rule.Limiter { return listedLimiter{env.Lists.Handle(r.List)} },
	})
}

type listedLimiter struct{ list *list.Handle }

func (l listedLimiter) Acquire(call rule.Call) (rule.Ticket, rule.Decision) {
	user, _ := call.Attribute.Text()
	if present := l.list.List(); present != nil && present.ContainsText(user) {
		return 0, rule.Block
	}
	return 0, rule.Pass
}

func (listedLimiter) RetryAfter(rule.Call) time.Duration         { return 0 }
func (listedLimiter) GiveBack(clock.Instant, rule.Ticket, int32) {}
func (listedLimiter) Status(clock.Instant) rule.Status           { return rule.Status{} }
func (listedLimiter) Idle(clock.Instant) bool                    { return true }

func listedRules(t *testing.T, kind *rule.Type[listed]) (s rules.Set) {
	t.Helper()
	s, err := rules.NewTable(kind).Parse("a.yaml", []byte("listed: [{name: one, resource: orders, list: scrapers}]"))
	require.NoError(t, err)
	return s
}

func TestRulesTellWhichListsTheyReferTo(t *testing.T) {
	kind := listedKind()
	for r := range listedRules(t, kind).All() {
		assert.Equal(t, []string{"scrapers"}, r.Lists())
		assert.Equal(t, []string{"scrapers"}, r.WithDefaults().Lists())
	}
	assert.Empty(t, kind.Of(listed{}).Lists())
	assert.Empty(t, denyKind().Of(denyRule{}).Lists(), "a kind that refers to none")
}

func TestSimulationsHaveLists(t *testing.T) {
	kind := listedKind()
	load := simulate.Load{Streams: []simulate.Stream{{
		Resource: "orders", Times: []time.Duration{0}, Attrs: []simulate.Attr{{Name: "user", Values: []any{"eve"}}},
	}}}
	lists := list.NewRegistry()
	for _, passed := range []int{1, 0} {
		result, err := simulate.Run(t.Context(), listedRules(t, kind), load, simulate.Options{
			Kinds: []rule.Definition{kind}, Lists: lists,
		})
		require.NoError(t, err)
		assert.EqualValues(t, passed, result.Seconds[0].Passed)
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "scrapers.txt"), []byte("eve\n"), 0o600))
		require.NoError(t, file.ReadLists(t.Context(), lists, dir))
	}
}

// A list of a file decides the calls of an engine, from the moment at which it is there.
func TestListOfAFileDecidesCalls(t *testing.T) {
	kind := listedKind()
	engine := core.New(core.Config{Kinds: []rule.Definition{kind}, Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	require.NoError(t, engine.Load(listedRules(t, kind)))
	enter := func() error {
		guard, err := engine.Entry(t.Context(), "orders", core.String("user", "eve"))
		guard.Exit()
		return err
	}
	require.NoError(t, enter())

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scrapers.txt"), []byte("eve\n"), 0o600))
	watch, err := file.WatchLists(t.Context(), engine.Lists(), dir, file.Options{Interval: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer watch.Close()
	require.NoError(t, watch.Ready(t.Context()))
	require.ErrorIs(t, enter(), core.ErrBlocked)

	require.NoError(t, os.Remove(filepath.Join(dir, "scrapers.txt")))
	require.Eventually(t, func() bool { return enter() == nil }, 20*time.Second, time.Millisecond)
}
