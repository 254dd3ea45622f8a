package adaptertest

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/priority"
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
			return []core.Option{core.String("user", r.Metadata("user")), core.Int("size", 3), core.Priority(core.PriorityLow)}
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
	var answers []Code
	for _, tokens = range []int{7, 4, 3, 1} {
		answers = append(answers, c.answer(call(t.Context())).Code)
	}
	assert.Equal(t, []Code{OK, ResourceExhausted, OK, ResourceExhausted}, answers)
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
	proxies := RPCOptions{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	wide, forwarded := proxies, proxies
	wide.IPv6Prefix, forwarded.UseForwarded = 48, true
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

// rpcBelieving returns options that let callers of a network choose priorities.
func rpcBelieving(network string, most rule.Priority) RPCOptions {
	return RPCOptions{
		PriorityKey:     priority.Field,
		PriorityCallers: []priority.Callers{{From: []netip.Prefix{netip.MustParsePrefix(network)}, Max: most}},
	}
}

// prioritized makes a call and returns the priority that rules see and that of the context
// of the handler.
func (c rpcCase) prioritized(t *testing.T, options RPCOptions, said ...string) (seen, inContext rule.Priority, known bool) {
	t.Helper()
	p := new(Probe)
	call := c.serve(t, p.NewEngine(t), options, func(ctx context.Context) error {
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

func rpcCallersChoose(t *testing.T, c rpcCase) {
	const here, inside = "127.0.0.0/8", "10.0.0.0/8"
	trusted, limited := rpcBelieving(here, core.PriorityCritical), rpcBelieving(here, core.PriorityNormal)
	stranger := rpcBelieving(inside, core.PriorityCritical)
	byMethod, proxied := stranger, stranger
	byMethod.Priority = func(RPCCall) rule.Priority { return core.PriorityLow }
	proxied.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(here)}
	for name, test := range map[string]struct {
		options RPCOptions
		said    []string
		want    rule.Priority
		known   bool
	}{
		"trusted, higher":        {trusted, []string{"critical"}, core.PriorityCritical, true},
		"trusted, lower":         {trusted, []string{"sheddable"}, core.PrioritySheddable, true},
		"trusted up to normal":   {limited, []string{"critical"}, core.PriorityNormal, true},
		"not said":               {trusted, nil, core.PriorityNormal, false},
		"bad value":              {trusted, []string{"urgent"}, core.PriorityNormal, false},
		"said twice":             {trusted, []string{"low", "critical"}, core.PriorityNormal, false},
		"not trusted":            {stranger, []string{"critical"}, core.PriorityNormal, false},
		"not trusted, by method": {byMethod, []string{"critical"}, core.PriorityLow, true},
		"client of a proxy":      {proxied, []string{"critical"}, core.PriorityCritical, true},
		"nothing set by default": {RPCOptions{}, []string{"critical"}, core.PriorityNormal, false},
	} {
		seen, inContext, known := c.prioritized(t, test.options, test.said...)
		assert.Equal(t, test.want, seen, name)
		assert.Equal(t, test.want, inContext, name)
		assert.Equal(t, test.known, known, name)
	}
}

func rpcTrustByAFunction(t *testing.T, c rpcCase) {
	options := rpcBelieving("127.0.0.0/8", core.PriorityNormal)
	asked, trusts := 0, true
	options.PriorityTrust = func(r RPCCall) (rule.Priority, bool) {
		asked++
		return core.PriorityHigh, trusts && r.Metadata("token") == "secret"
	}
	seen, _, _ := c.prioritized(t, options, "critical")
	assert.Equal(t, core.PriorityHigh, seen)
	assert.Equal(t, 1, asked)
	_, _, known := c.prioritized(t, options)
	assert.False(t, known)
	assert.Equal(t, 1, asked, "nobody has said a priority")
	trusts = false
	seen, _, _ = c.prioritized(t, options, "critical")
	assert.Equal(t, core.PriorityNormal, seen, "by its address")
}

func clientsPassThePriorityOn(t *testing.T, c rpcCase) {
	here, there := new(Probe), new(Probe)
	client := c.Serve(t, RPCServer{
		Handle: succeed,
		Client: []RPCGuard{{here.NewEngine(t), RPCOptions{PriorityKey: priority.Field}}},
		Server: []RPCGuard{{there.NewEngine(t), rpcBelieving("127.0.0.0/8", core.PriorityCritical)}},
	})
	for _, want := range []rule.Priority{core.PriorityCritical, core.PrioritySheddable} {
		ctx := core.ContextWithPriority(t.Context(), want)
		require.NoError(t, client(ctx, c.shape, strings.ToLower(priority.Field), "high"), "what the program says is replaced")
		assert.Equal(t, want, here.LastCall().Priority())
		assert.Equal(t, want, there.LastCall().Priority())
	}
	require.NoError(t, client(t.Context(), c.shape, strings.ToLower(priority.Field), "high"))
	assert.Equal(t, core.PriorityNormal, there.LastCall().Priority(), "without a priority, none is sent")
}
