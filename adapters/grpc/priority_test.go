package penstockgrpc_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// loopback trusts callers of this machine up to high.
func loopback() penstockgrpc.Options {
	return penstockgrpc.Options{
		PriorityKey: priority.Field, // in any case
		Clients: clientip.Options{PriorityCallers: []priority.Callers{{
			From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, Max: rule.PriorityHigh,
		}}},
	}
}

func TestPriorityOfACallIsWhatItsCallerMayChoose(t *testing.T) {
	byMethod := loopback()
	byMethod.Priority = func(_ context.Context, method string) rule.Priority {
		if method != "" {
			return rule.PriorityLow
		}
		return rule.PriorityNormal
	}
	untrusted := byMethod
	untrusted.Clients.PriorityCallers = nil
	byFunction := untrusted
	byFunction.PriorityTrust = func(ctx context.Context) (rule.Priority, bool) {
		return rule.PriorityCritical, len(metadata.ValueFromIncomingContext(ctx, "token")) == 1
	}
	for name, test := range map[string]struct {
		options penstockgrpc.Options
		values  []string
		want    rule.Priority
		known   bool
	}{
		"trusted, lower":        {loopback(), []string{"sheddable"}, rule.PrioritySheddable, true},
		"trusted, too high":     {loopback(), []string{"critical"}, rule.PriorityHigh, true},
		"bad value":             {loopback(), []string{"urgent"}, rule.PriorityNormal, false},
		"several values":        {loopback(), []string{"low", "high"}, rule.PriorityNormal, false},
		"not said":              {loopback(), nil, rule.PriorityNormal, false},
		"not said, by method":   {byMethod, nil, rule.PriorityLow, true},
		"said, by method":       {byMethod, []string{"high"}, rule.PriorityHigh, true},
		"not trusted":           {untrusted, []string{"high"}, rule.PriorityLow, true},
		"trusted by a function": {byFunction, []string{"critical"}, rule.PriorityCritical, true},
		"nothing set":           {penstockgrpc.Options{}, []string{"high"}, rule.PriorityNormal, false},
	} {
		for _, s := range shapes() {
			p := new(adaptertest.Probe)
			type found struct {
				priority rule.Priority
				known    bool
			}
			inContext := make(chan found, 1)
			handler := service{finish: func(ctx context.Context) error {
				value, known := core.PriorityFromContext(ctx)
				inContext <- found{value, known}
				return nil
			}}
			client := guard(t, atServer, p.NewEngine(t), test.options, handler)
			ctx := metadata.AppendToOutgoingContext(t.Context(), "token", "1")
			for _, value := range test.values {
				ctx = metadata.AppendToOutgoingContext(ctx, "penstock-priority", value)
			}
			require.NoError(t, s.call(ctx, client), "%s, %s", name, s.name)
			assert.Equal(t, test.want, p.LastCall().Priority(), "%s, %s", name, s.name)
			assert.Equal(t, found{test.want, test.known}, <-inContext, "%s, %s", name, s.name)
		}
	}
}

// TestPriorityIsPassedOnThroughServices makes calls through a service to another.
func TestPriorityIsPassedOnThroughServices(t *testing.T) {
	for _, s := range shapes() {
		t.Run(s.name, func(t *testing.T) {
			behind, between := new(adaptertest.Probe), new(adaptertest.Probe)
			options := loopback()
			last, _ := serve(t, service{finish: succeed}, guardServer(behind.NewEngine(t), options)...)
			next := testpb.NewTestServiceClient(dial(t, last, guardClient(between.NewEngine(t), options)...))
			client := guard(t, atServer, newEngine(t), options, service{finish: func(ctx context.Context) error {
				ctx = metadata.AppendToOutgoingContext(ctx, "penstock-priority", "high") // is replaced
				return s.call(ctx, next)
			}})
			for _, test := range []struct {
				value string
				want  rule.Priority
			}{
				{"low", rule.PriorityLow},
				{"high", rule.PriorityHigh},
				{"normal", rule.PriorityNormal},
				{"urgent", rule.PriorityNormal},
			} {
				ctx := metadata.AppendToOutgoingContext(t.Context(), "penstock-priority", test.value)
				require.NoError(t, s.call(ctx, client))
				assert.Equal(t, test.want, between.LastCall().Priority(), "%s: rules of the client", test.value)
				assert.Equal(t, test.want, behind.LastCall().Priority(), "%s: rules of the service behind", test.value)
			}
		})
	}
}
