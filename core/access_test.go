package core_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func loadAccess(t testing.TB, e *core.Engine, accessRules ...access.Rule) {
	t.Helper()
	require.NoError(t, e.Load(rules.Set{Access: accessRules}))
}

func setList(t testing.TB, e *core.Engine, name string, entries ...string) {
	t.Helper()
	var b list.Builder
	for _, entry := range entries {
		require.NoError(t, b.Add(entry))
	}
	l, err := b.Build(context.Background())
	require.NoError(t, err)
	e.Lists().Set(name, l)
}

// from makes a call of an address and returns whether it passed.
func from(e *core.Engine, resource, ip string) bool {
	return enter(e, resource, 1, core.String("ip", ip)) == 1
}

func TestAccessRuleRefusesForGood(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{
		Access: []access.Rule{{Resource: "r", Deny: rule.StringsOf("10.0.0.0/8")}},
		Flow:   []flow.Rule{{Resource: "r", Limit: 1, Window: time.Hour}},
	}))
	_, err := e.Entry(context.Background(), "r", core.String("ip", "10.1.2.3"))
	var refused *core.BlockError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, core.BlockError{Resource: "r", Kind: rules.KindAccess, Rule: "r", Reason: rule.Denied}, *refused)
	assert.True(t, from(e, "r", "192.0.2.1"), "a refused call takes no token")
	assert.False(t, from(e, "r", "192.0.2.1"))
}

func TestAccessRuleDecidesByOriginAndOtherAttributes(t *testing.T) {
	e, _ := newEngine(t)
	loadAccess(
		t, e,
		access.Rule{Resource: "partners", Attribute: "origin", Allow: rule.StringsOf("acme", "initech-*")},
		access.Rule{Resource: "users", Attribute: "user", Deny: rule.StringsOf("7", "true", "banned")},
	)
	assert.Equal(t, 1, enter(e, "partners", 1, core.Origin("acme")))
	assert.Equal(t, 1, enter(e, "partners", 1, core.Origin("initech-eu")))
	assert.Equal(t, 1, enter(e, "partners", 1, core.Origin("evil"), core.String("origin", "acme")), "an attribute of that name counts")
	assert.Zero(t, enter(e, "partners", 1, core.Origin("evil")))
	assert.Zero(t, enter(e, "partners", 1))
	assert.Zero(t, enter(e, "users", 1, core.Int("user", 7)))
	assert.Zero(t, enter(e, "users", 1, core.Bool("user", true)))
	assert.Zero(t, enter(e, "users", 1, core.String("user", "banned")))
	assert.Equal(t, 1, enter(e, "users", 1, core.Int("user", 8)))
	assert.Equal(t, 1, enter(e, "users", 1))
}

func TestAccessRuleIsOnlyForCallsOfItsOrigin(t *testing.T) {
	e, _ := newEngine(t)
	loadAccess(t, e, access.Rule{Resource: "r", Deny: rule.StringsOf("0.0.0.0/0"), Origin: "mobile"})
	assert.Zero(t, enter(e, "r", 1, core.Origin("mobile"), core.String("ip", "192.0.2.1")))
	assert.Equal(t, 1, enter(e, "r", 1, core.Origin("web"), core.String("ip", "192.0.2.1")))
}

func TestShadowAccessRuleOnlyCounts(t *testing.T) {
	e, _ := newEngine(t)
	loadAccess(t, e, access.Rule{Resource: "r", Deny: rule.StringsOf("10.0.0.0/8"), Shadow: true})
	guard, err := e.Entry(context.Background(), "r", core.String("ip", "10.1.2.3"))
	require.NoError(t, err)
	require.NotNil(t, guard.WouldBlock())
	assert.Equal(t, rule.Denied, guard.WouldBlock().Reason)
	guard.Exit()
	guard, err = e.Entry(context.Background(), "r", core.String("ip", "192.0.2.1"))
	require.NoError(t, err)
	assert.Nil(t, guard.WouldBlock())
	guard.Exit()
}

func TestAccessRuleOfAPatternGuardsEveryName(t *testing.T) {
	for _, shared := range []bool{false, true} {
		e, _ := newEngine(t)
		loadAccess(t, e, access.Rule{Match: "admin:*", Shared: shared, List: "l"})
		setList(t, e, "l", "10.0.0.0/8")
		for i := range 100 {
			name := fmt.Sprint("admin:", i)
			assert.False(t, from(e, name, "10.1.2.3"))
			assert.True(t, from(e, name, "192.0.2.1"))
		}
		assert.True(t, from(e, "orders", "10.1.2.3"))
	}
}

// A reload and a new version of a list decide the next call.
func TestReloadedAccessRuleDecidesTheNextCall(t *testing.T) {
	e, _ := newEngine(t)
	loadAccess(t, e, access.Rule{Resource: "r", List: "l"})
	setList(t, e, "l", "10.0.0.0/8")
	assert.False(t, from(e, "r", "10.1.2.3"))
	setList(t, e, "l", "192.0.2.0/24")
	assert.True(t, from(e, "r", "10.1.2.3"))
	assert.False(t, from(e, "r", "192.0.2.1"))
	loadAccess(t, e, access.Rule{Resource: "r", List: "l", ListAction: access.Allow})
	assert.True(t, from(e, "r", "192.0.2.1"))
	assert.False(t, from(e, "r", "10.1.2.3"))
	loadAccess(t, e)
	assert.True(t, from(e, "r", "10.1.2.3"))
}

// A rule whose list is not there says so: once in the log, in the status, and to the
// observer, however many resources it guards.
func TestMissingListIsSeen(t *testing.T) {
	var log bytes.Buffer
	var changes []core.StateChange
	e := core.New(core.Config{
		Clock: clock.NewVirtual(begin), Logger: slog.New(slog.NewJSONHandler(&log, nil)),
		Observer: core.Observer{StateChanged: func(c core.StateChange) { changes = append(changes, c) }},
	})
	defer e.Close()
	loadAccess(t, e, access.Rule{Name: "no-scrapers", Match: "*", List: "scrapers"})
	for i := range 10 {
		assert.True(t, from(e, fmt.Sprint("r", i), "10.1.2.3"))
	}
	require.Len(t, changes, 1)
	assert.Equal(t, core.StateChange{
		At: changes[0].At, Resource: changes[0].Resource, Kind: rules.KindAccess, Rule: "no-scrapers", From: access.Ready, To: access.ListMissing,
	}, changes[0])
	require.Len(t, logLines(t, &log, "penstock: the state of a rule changed"), 1)
	for _, r := range e.Snapshot().Resources {
		for _, status := range r.Rules {
			assert.Equal(t, access.ListMissing, status.State, r.Name)
		}
	}
	setList(t, e, "scrapers", "10.0.0.0/8")
	assert.False(t, from(e, "r1", "10.1.2.3"))
	require.Len(t, changes, 2)
	assert.Equal(t, access.Ready, changes[1].To)
}

func TestRefusedAccessIsLoggedOnceASecond(t *testing.T) {
	var log bytes.Buffer
	c := clock.NewVirtual(begin)
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	defer e.Close()
	loadAccess(t, e, access.Rule{Resource: "r", Deny: rule.StringsOf("10.0.0.0/8")})
	const seconds = 3
	for range seconds {
		for range 100 {
			assert.False(t, from(e, "r", "10.1.2.3"))
		}
		c.Advance(time.Second)
	}
	lines := logLines(t, &log, "penstock: call refused")
	require.Len(t, lines, seconds)
	assert.NotContains(t, lines[0], "retryAfter", "waiting does not help")
	assert.Equal(t, uint64(seconds*100), e.Snapshot().Resources[0].Blocked)
}

func TestNoCallUnderAnAccessRuleAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, _ := newEngine(t)
	loadAccess(
		t, e,
		access.Rule{Resource: "r", Deny: rule.StringsOf("10.0.0.0/8"), List: "l"},
		access.Rule{Name: "users", Resource: "r", Attribute: "user", Deny: rule.StringsOf("banned", "test-*")},
	)
	setList(t, e, "l", "192.0.2.0/24", "2001:db8::/32")
	for _, ip := range []string{"10.1.2.3", "192.0.2.1", "198.51.100.1", "2001:db8::1", "2001:db9::1", "no address", ""} {
		for _, user := range []string{"alice", "banned", "test-1"} {
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				guard, _ := e.Entry(context.Background(), "r", core.String("ip", ip), core.String("user", user))
				guard.Exit()
			}), "%s %s", ip, user)
		}
	}
}
