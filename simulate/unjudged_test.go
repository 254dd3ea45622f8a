package simulate_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// recordUsers records a call of each user and caller under rules.
func recordUsers(t *testing.T, set rules.Set, values bool) *recording.Recording {
	t.Helper()
	c := clock.NewVirtual(clock.Instant(1e18).Time())
	lists := list.NewRegistry()
	blocked := new(list.Builder)
	require.NoError(t, blocked.AddText("mallory"))
	built, err := blocked.Build(t.Context())
	require.NoError(t, err)
	lists.Set("blocked", built)
	e := core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler), Lists: lists, Recorder: &core.Recorder{Values: values}})
	defer e.Close()
	require.NoError(t, e.Load(set))
	for _, user := range []string{"alice", "bob", "mallory"} {
		for _, origin := range []string{"web", "mobile"} {
			if guard, err := e.Entry(t.Context(), "orders", core.String("user", user), core.Origin(origin)); err == nil {
				guard.Exit()
			}
			c.Advance(1e9)
		}
	}
	of, err := e.Recorded(1e12)
	require.NoError(t, err)
	require.Len(t, of.Calls, 6)
	return reread(t, of)
}

// refusers replays and returns which rule refuses each call, "" if none.
func refusers(t *testing.T, of *recording.Recording, set rules.Set, against *rules.Set) (by []string, report simulate.ReplayReport) {
	t.Helper()
	report, err := simulate.Replay(t.Context(), of, set, simulate.ReplayOptions{WarmUp: -1, Against: against}.
		Each(func(_ int, c simulate.ReplayedCall) { by = append(by, c.Rule.Name) }))
	require.NoError(t, err)
	return by, report
}

func users(name string, r access.Rule) access.Rule {
	r.Name, r.Resource = name, "orders"
	if r.Attribute == "" {
		r.Attribute = "user"
	}
	return r
}

// What values hashes hide is not judged: a rule that was in force refuses whom it refused, and another one
// nobody.
func TestRulesThatNameHashedValuesRefuseOnlyWhomTheyRefused(t *testing.T) {
	deny := users("deny", access.Rule{Deny: rule.StringsOf("bob")})
	listed := users("listed", access.Rule{List: "blocked"})
	callers := users("callers", access.Rule{Attribute: rule.KeyOrigin, Allow: rule.StringsOf("web")})
	inForce := rules.Set{Access: []access.Rule{deny, listed}}
	of := recordUsers(t, inForce, false)
	require.True(t, of.Hashed)
	asRecorded := []string{"", "", "deny", "deny", "listed", "listed"}

	by, report := refusers(t, of, inForce, nil)
	assert.Equal(t, asRecorded, by)
	assert.Equal(t, []simulate.UnjudgedRule{
		{Kind: "access", Rule: "deny", Why: "it names values of user, which are recorded as hashes", Stands: true},
		{Kind: "access", Rule: "listed", Why: "it names values of user, which are recorded as hashes", Stands: true},
	}, report.Unjudged)
	by, _ = refusers(t, of, inForce, &inForce)
	assert.Equal(t, asRecorded, by)

	// One that is changed, and one that is new, refuse nobody; that of callers is judged, as they are no hashes.
	changed := rules.Set{Access: []access.Rule{users("deny", access.Rule{Deny: rule.StringsOf("bob", "eve")}), users("only", access.Rule{Allow: rule.StringsOf("alice")}), callers}}
	by, report = refusers(t, of, changed, &inForce)
	assert.Equal(t, []string{"", "callers", "", "callers", "", "callers"}, by)
	require.Len(t, report.Unjudged, 2)
	assert.False(t, report.Unjudged[0].Stands)
	assert.Contains(t, report.Notes, `access rule "only" is not judged: it names values of user, which are recorded as hashes;`+
		` it refuses no call here, as it is not one of the rules to compare with`)
	assert.Equal(t, 4, report.Total.Against.Refused)

	// A rule that is gone lets its calls through, and so does one that has become a shadow.
	shadow := listed
	shadow.Shadow = true
	by, _ = refusers(t, of, rules.Set{Access: []access.Rule{shadow}}, nil)
	assert.Equal(t, make([]string, 6), by)
}

func TestLimitsOfNamedValuesAreNotJudgedByHashes(t *testing.T) {
	set := rules.Set{HotParam: []hotparam.Rule{{
		Name: "users", Resource: "orders", Param: rule.StringsOf("user"), Limit: 0, Values: rule.NumberMapOf(rule.NumberEntry{Key: rule.String("alice"), Value: 10}),
	}}}
	for _, values := range []bool{false, true} {
		of := recordUsers(t, set, values)
		by, report := refusers(t, of, set, nil)
		assert.Equal(t, []string{"", "", "users", "users", "users", "users"}, by)
		assert.Len(t, report.Unjudged, map[bool]int{false: 1}[values])
		set.HotParam[0].Values = rule.NumberMap{}
		by, report = refusers(t, of, set, nil)
		assert.Equal(t, []string{"users", "users", "users", "users", "users", "users"}, by, "which names no value")
		assert.Empty(t, report.Unjudged)
		set.HotParam[0].Values = rule.NumberMapOf(rule.NumberEntry{Key: rule.String("alice"), Value: 10})
	}
}

// A rule that allows some tenants does not refuse all calls because nobody had asked for their tenants.
func TestRulesOnAttributesThatWereNotRecordedRefuseNobody(t *testing.T) {
	of := recordUsers(t, rules.Set{}, true)
	set := rules.Set{Access: []access.Rule{users("tenants", access.Rule{Attribute: "tenant", Allow: rule.StringsOf("acme")})}}
	by, report := refusers(t, of, set, nil)
	assert.Equal(t, make([]string, 6), by)
	require.Len(t, report.Unjudged, 1)
	assert.Equal(t, "no recorded call has tenant", report.Unjudged[0].Why)

	of = recordUsers(t, rules.Set{Access: []access.Rule{users("deny", access.Rule{Deny: rule.StringsOf("bob")})}}, true)
	by, report = refusers(t, of, rules.Set{Access: []access.Rule{users("only", access.Rule{Allow: rule.StringsOf("bob")})}}, nil)
	assert.Equal(t, []string{"only", "only", "", "", "only", "only"}, by, "values are judged as they are")
	assert.Empty(t, report.Unjudged)
}
