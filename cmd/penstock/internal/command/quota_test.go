package command_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestQuotaShowsWhatIsLeft(t *testing.T) {
	s := newService(t)
	require.NoError(t, s.engine.Load(rules.Set{
		Flow: []flow.Rule{{Name: "hourly", Resource: "search", Limit: 10, Window: time.Hour}},
		HotParam: []hotparam.Rule{{
			Name: "per-user", Resource: "search", Param: rule.StringsOf("user"), Limit: 5, Window: time.Minute, Algorithm: hotparam.FixedWindow,
		}},
	}))
	for range 3 {
		guard, err := s.engine.Entry(t.Context(), "search", core.String("user", "alice"))
		require.NoError(t, err)
		guard.Exit()
	}
	quota := func(args ...string) answer {
		return user{}.run(t, append([]string{"quota", "--engine", s.address}, args...)...)
	}
	got := quota()
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	require.Len(t, lines, 2, got.err)
	assert.Equal(t, []string{"RULE", "KIND", "RESOURCE", "VALUE", "LIMIT", "USED", "LEFT", "MORE", "IN"}, strings.Fields(lines[0]))
	assert.Equal(t, []string{"hourly", "flow", "search", "-", "10", "per", "1h0m0s", "3", "7"}, strings.Fields(lines[1])[:9])

	got = quota("--rule", "per-user", "--attr", "user=alice", "-o", "json")
	var answers []struct {
		Engine string
		Quotas []struct {
			Rule, Value string
			Used        float64
			Remaining   int64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &answers), got.out)
	require.Len(t, answers, 1)
	require.Len(t, answers[0].Quotas, 1)
	assert.Equal(t, "alice", answers[0].Quotas[0].Value)
	assert.InDelta(t, 5, answers[0].Quotas[0].Used+float64(answers[0].Quotas[0].Remaining), 0)

	got = quota("--engine", s.address)
	assert.Contains(t, got.out, "ENGINE")
	got = quota("--kind", "breaker")
	assert.Contains(t, got.out, "no such limits")
	for want, args := range map[int][]string{
		command.ExitNo:     {"--rule", "nothing"},
		command.ExitUsage:  {"--attr", "user"},
		command.ExitFailed: {"--engine", "127.0.0.1:1"},
	} {
		assert.Equal(t, want, quota(args...).code, args)
	}
	assert.Equal(t, command.ExitUsage, user{}.run(t, "quota").code)
}

func TestQuotaAddRechargesABalance(t *testing.T) {
	s := newService(t)
	require.NoError(t, s.engine.Load(rules.Set{
		Flow:     []flow.Rule{{Name: "all", Resource: "search", Algorithm: flow.Prepaid}},
		HotParam: []hotparam.Rule{{Name: "credit", Resource: "search", Param: rule.StringsOf("tenant"), Algorithm: hotparam.Prepaid}},
	}))
	add := func(args ...string) answer {
		return user{}.run(t, append([]string{"quota", "add", "--engine", s.address}, args...)...)
	}
	assert.Equal(t, "10 left\n", add("--rule", "all", "10").out)
	assert.Equal(t, "1000 left\n", add("--rule", "credit", "--attr", "tenant=acme", "1000").out)
	assert.Equal(t, "950 left\n", add("--rule", "credit", "--key", "acme", "--reason", "invoice", "--", "-50").out)
	assert.JSONEq(t, `{"left": 950}`, add("--rule", "credit", "--key", "acme", "-o", "json", "0").out)
	got := user{}.run(t, "quota", "--engine", s.address, "--rule", "credit", "--attr", "tenant=acme")
	assert.Contains(t, got.out, "prepaid")
	assert.Contains(t, got.out, "950")
	for want, args := range map[int][]string{
		command.ExitNo:    {"--rule", "nothing", "1"},
		command.ExitUsage: {"--rule", "credit", "--key", "acme", "many"},
	} {
		assert.Equal(t, want, add(args...).code, args)
	}
	assert.Equal(t, command.ExitFailed, user{}.run(t, "quota", "add", "--engine", "127.0.0.1:1", "--rule", "all", "1").code)
	for _, args := range [][]string{{"1"}, {"--rule", "credit", "--key", "a", "--attr", "tenant=a", "1"}, {"--rule", "credit"}} {
		assert.Equal(t, command.ExitUsage, add(args...).code, args)
	}
}
