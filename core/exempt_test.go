package core_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestHealthChecksAreNotUnderRulesWithPatterns(t *testing.T) {
	for _, maxResources := range []int{0, 1} { // with resources of their own, and beyond the bound
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet, MaxResources: maxResources})
		t.Cleanup(e.Close)
		require.NoError(t, e.Load(rules.Set{
			Isolation: []isolation.Rule{{Match: "*", Shared: true, Limit: 0}},
			Flow:      []flow.Rule{{Match: "~.", Limit: 0, Except: rule.StringsOf("free")}, {Resource: "GET:/readyz", Limit: 1}},
		}))
		for name, want := range map[string]int{
			"GET:/healthz": 3, "HEAD:/healthz": 3, "GET:/metrics": 3, "GET:/health/ready": 3,
			"/healthz": 3, "/metrics": 3, // as kratos names routes
			"/grpc.health.v1.Health/Check": 3, "/grpc.health.v1.Health/Watch": 3,
			"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": 3,
			"GET:/readyz":   1, // a rule names it
			"POST:/healthz": 0, "OPTIONS:/healthz": 0, "GET:/healthz/": 0, "GET:/api/healthz": 0, "GET:/orders": 0, "healthz": 0, "/healthz/": 0,
			"/grpc.health.v1.HealthX/Check": 0,
		} {
			assert.Equal(t, want, enter(e, name, 3), name)
		}
	}
}

func TestRulesThatDenyAreForHealthChecksToo(t *testing.T) {
	e, _ := newEngine(t)
	require.NoError(t, e.Load(rules.Set{Access: []access.Rule{{Match: "*", Attribute: "ip", Allow: rule.StringsOf("10.0.0.0/8")}}}))
	assert.Zero(t, enter(e, "GET:/metrics", 1, core.String("ip", "192.0.2.1")))
	assert.Equal(t, 1, enter(e, "GET:/metrics", 1, core.String("ip", "10.0.0.1")))
}

func TestWhatIsExemptCanBeChosen(t *testing.T) {
	var log bytes.Buffer
	for _, test := range []struct {
		exempt      []string
		free, bound string
	}{
		{[]string{"job:*", "["}, "job:a", "GET:/healthz"},
		{[]string{}, "", "GET:/healthz"},
		{append(core.DefaultExempt(), "job:a"), "job:a", "job:b"},
	} {
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: slog.New(slog.NewTextHandler(&log, nil)), Exempt: test.exempt})
		t.Cleanup(e.Close)
		require.NoError(t, e.Load(rules.Set{Flow: []flow.Rule{{Match: "*", Limit: 0}}}))
		if test.free != "" {
			assert.Equal(t, 1, enter(e, test.free, 1), test.free)
		}
		assert.Zero(t, enter(e, test.bound, 1), test.bound)
	}
	assert.Contains(t, log.String(), "Config.Exempt has an entry that is no pattern")
}
