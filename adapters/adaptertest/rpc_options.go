package adaptertest

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func rpcOptionTests() []rpcTest {
	return []rpcTest{
		{"rules get what the options say", []Feature{Metadata}, each(rpcRulesGetWhatTheOptionsSay)},
		{"Tokens are what a call takes", nil, each(rpcTokensAreTaken)},
		{"rules look at metadata and method", []Feature{Metadata}, each(rulesLookAtMetadata)},
		{"attributes of the service go first", []Feature{Metadata}, each(rpcAttributesOfTheService)},
		{"servers know the addresses of clients", []Feature{Metadata}, each(serversKnowAddresses, AtServer)},
		{"long metadata is shortened", []Feature{Metadata}, each(longMetadataIsShortened)},
	}
}

func rpcPriorityTests() []rpcTest {
	return []rpcTest{
		{"callers choose the priority that they may", []Feature{Metadata}, each(rpcCallersChoose, AtServer)},
		{"trust by a function goes first and is asked only when needed", []Feature{Metadata}, each(rpcTrustByAFunction, AtServer)},
		{"clients pass the priority of the context on", []Feature{Metadata}, each(clientsPassThePriorityOn, AtClient)},
	}
}

// called makes one call and returns what the rules got to know.
func (c rpcCase) called(t *testing.T, p *Probe, options RPCOptions, metadata ...string) rule.Call {
	t.Helper()
	call := c.serve(t, p.NewEngine(t), options, succeed)
	require.NoError(t, call(t.Context(), metadata...))
	p.requireOutcome(t, c.Timeout, Succeeded)
	return p.LastCall()
}

func rpcRulesGetWhatTheOptionsSay(t *testing.T, c rpcCase) {
	options := RPCOptions{
		Origin: func(r RPCCall) string { return r.Metadata("app") },
		Tokens: func(RPCCall) int { return 7 },
		Attributes: func(r RPCCall) []core.Option {
			return []core.Option{core.String("user", r.Metadata("user")), core.Int("size", 3), core.Priority(rule.PriorityLow)}
		},
	}
	call := c.called(t, &Probe{Origin: "mobile"}, options, "app", "mobile", "user", "ann")
	want := rule.Call{Now: call.Now, Tokens: 7, Attribute: rule.String("ann")}
	want.SetCaller(rule.PriorityLow, c.at == AtServer)
	assert.Equal(t, describe(want), describe(call))

	call = c.called(t, new(Probe), RPCOptions{})
	want = rule.Call{Now: call.Now, Tokens: 1}
	want.SetCaller(rule.PriorityNormal, c.at == AtServer)
	assert.Equal(t, describe(want), describe(call), "by default")

	other := &Probe{Origin: "mobile"}
	require.NoError(t, c.serve(t, other.NewEngine(t), options, succeed)(t.Context(), "app", "batch"))
	assert.Empty(t, other.Calls(), "the rule is for another origin")
}

func rpcTokensAreTaken(t *testing.T, c rpcCase) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Resource: c.resource(), Limit: 10}}})
	tokens := 0
	call := c.serve(t, engine, RPCOptions{Tokens: func(RPCCall) int { return tokens }}, succeed)
	var answers []rpc.Code
	for _, tokens = range []int{7, 4, 3, 1} {
		answers = append(answers, c.answer(call(t.Context())).Code)
	}
	assert.Equal(t, []rpc.Code{rpc.OK, rpc.ResourceExhausted, rpc.OK, rpc.ResourceExhausted}, answers)
}

func rulesLookAtMetadata(t *testing.T, c rpcCase) {
	for key, want := range map[string]rule.Attribute{
		"method":           rule.String(c.Method(c.shape)),
		"metadata:tenant":  rule.String("a"),
		"metadata:TENANT":  rule.String("a"),
		"metadata:missing": {},
		"metadata:":        {},
		"header:other":     {},
		"user":             {},
	} {
		call := c.called(t, &Probe{Attribute: key}, RPCOptions{}, "tenant", "a", "tenant", "b", "user", "ann")
		assert.Equal(t, want.GoString(), call.Attribute.GoString(), key)
	}
}

func rpcAttributesOfTheService(t *testing.T, c rpcCase) {
	for _, key := range []string{"method", "metadata:tenant"} {
		options := RPCOptions{Attributes: func(RPCCall) []core.Option { return []core.Option{core.Int(key, 7)} }}
		call := c.called(t, &Probe{Attribute: key}, options, "tenant", "a")
		assert.Equal(t, rule.Int(7).GoString(), call.Attribute.GoString(), key)
	}
}

func serversKnowAddresses(t *testing.T, c rpcCase) {
	proxies := RPCOptions{Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	wide, forwarded := proxies, proxies
	wide.Clients.IPv6Prefix, forwarded.Clients.UseForwarded = 48, true
	metadata := []string{"x-forwarded-for", "1.1.1.1, 2001:db8:1:2:3:4:5:6", "forwarded", "for=2.2.2.2"}
	for _, test := range []struct {
		key     string
		options RPCOptions
		want    string
	}{
		{"ip", RPCOptions{}, "127.0.0.1"},
		{"ipPrefix", RPCOptions{}, "127.0.0.1"},
		{"ip", proxies, "2001:db8:1:2:3:4:5:6"},
		{"ipPrefix", proxies, "2001:db8:1:2::/64"},
		{"ipPrefix", wide, "2001:db8:1::/48"},
		{"ip", forwarded, "2.2.2.2"},
	} {
		text, _ := c.called(t, &Probe{Attribute: test.key}, test.options, metadata...).Attribute.Text()
		assert.Equal(t, test.want, text, test.key)
	}
}

func longMetadataIsShortened(t *testing.T, c rpcCase) {
	call := c.called(t, &Probe{Attribute: "metadata:tenant"}, RPCOptions{}, "tenant", strings.Repeat("x", 2000))
	text, _ := call.Attribute.Text()
	assert.Len(t, text, 1024+1+32)
}

// rpcPriorityOptions returns what a test sets, as options.
func rpcPriorityOptions(s trusting) RPCOptions {
	options := RPCOptions{PriorityKey: priority.Field, Clients: s.clients()}
	if s.unread {
		options.PriorityKey = ""
	}
	if s.own != nil {
		options.Priority = func(RPCCall) rule.Priority { return *s.own }
	}
	if s.trust != nil {
		options.PriorityTrust = func(r RPCCall) (rule.Priority, bool) { return s.trust(r.Metadata("token") == "secret") }
	}
	return options
}

// prioritized makes a call and returns the priority that rules see and that of the context
// of the handler.
func (c rpcCase) prioritized(t *testing.T, s trusting, said ...string) (seen, inContext rule.Priority, known bool) {
	t.Helper()
	p := new(Probe)
	call := c.serve(t, p.NewEngine(t), rpcPriorityOptions(s), func(ctx context.Context) error {
		inContext, known = core.PriorityFromContext(ctx)
		return nil
	})
	metadata := []string{"x-forwarded-for", "10.1.1.1", "token", "secret"}
	for _, value := range said {
		metadata = append(metadata, strings.ToLower(priority.Field), value)
	}
	require.NoError(t, call(t.Context(), metadata...))
	p.requireOutcome(t, c.Timeout, Succeeded)
	return p.LastCall().Priority(), inContext, known
}

func rpcCallersChoose(t *testing.T, c rpcCase) { prioritizes(c.prioritized).checkChoices(t) }

func rpcTrustByAFunction(t *testing.T, c rpcCase) { prioritizes(c.prioritized).checkTrust(t) }

func clientsPassThePriorityOn(t *testing.T, c rpcCase) {
	here, there := new(Probe), new(Probe)
	client := c.Serve(t, RPCServer{
		Handle: succeed,
		Client: []RPCGuard{{here.NewEngine(t), RPCOptions{PriorityKey: priority.Field}}},
		Server: []RPCGuard{{there.NewEngine(t), rpcPriorityOptions(trusting{network: local, most: rule.PriorityCritical})}},
	})
	for _, want := range []rule.Priority{rule.PriorityCritical, rule.PrioritySheddable} {
		ctx := core.ContextWithPriority(t.Context(), want)
		require.NoError(t, client(ctx, c.shape, strings.ToLower(priority.Field), "high"), "what the program says is replaced")
		assert.Equal(t, want, here.LastCall().Priority())
		assert.Equal(t, want, there.LastCall().Priority())
	}
	require.NoError(t, client(t.Context(), c.shape, strings.ToLower(priority.Field), "high"))
	assert.Equal(t, rule.PriorityNormal, there.LastCall().Priority(), "without a priority, none is sent")
}
