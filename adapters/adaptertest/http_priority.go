package adaptertest

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func httpPriorityTests() []httpTest {
	return []httpTest{
		{"callers choose the priority that they may", nil, callersChooseThePriority},
		{"trust by a function goes first and is asked only when needed", nil, trustByAFunction},
	}
}

// believing returns options that let callers of a network choose priorities.
func believing(network string, most rule.Priority) Options {
	return Options{
		PriorityHeader:  "penstock-priority",
		PriorityCallers: []priority.Callers{{From: []netip.Prefix{netip.MustParsePrefix(network)}, Max: most}},
	}
}

func callersChooseThePriority(t *testing.T, h *HTTPHarness) {
	const here, inside = "127.0.0.0/8", "10.0.0.0/8"
	trusted, limited := believing(here, core.PriorityCritical), believing(here, core.PriorityNormal)
	stranger := believing(inside, core.PriorityCritical)
	byRoute, strangerByRoute := trusted, stranger
	byRoute.Priority = func(Request) rule.Priority { return core.PriorityLow }
	strangerByRoute.Priority = byRoute.Priority
	proxied := stranger
	proxied.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(here)}
	off := trusted
	off.PriorityHeader = ""
	for name, test := range map[string]struct {
		options Options
		said    []string
		want    rule.Priority
		known   bool
	}{
		"trusted, higher":        {trusted, []string{"critical"}, core.PriorityCritical, true},
		"trusted, lower":         {trusted, []string{" Sheddable"}, core.PrioritySheddable, true},
		"trusted up to normal":   {limited, []string{"critical"}, core.PriorityNormal, true},
		"trusted, normal":        {trusted, []string{"normal"}, core.PriorityNormal, true},
		"not said":               {trusted, nil, core.PriorityNormal, false},
		"not said, by route":     {byRoute, nil, core.PriorityLow, true},
		"said, by route":         {byRoute, []string{"high"}, core.PriorityHigh, true},
		"bad value":              {trusted, []string{"urgent"}, core.PriorityNormal, false},
		"bad value, by route":    {byRoute, []string{"9"}, core.PriorityLow, true},
		"said twice":             {trusted, []string{"low", "critical"}, core.PriorityNormal, false},
		"not trusted":            {stranger, []string{"critical"}, core.PriorityNormal, false},
		"not trusted, by route":  {strangerByRoute, []string{"critical"}, core.PriorityLow, true},
		"client of a proxy":      {proxied, []string{"critical"}, core.PriorityCritical, true},
		"no header is read":      {off, []string{"critical"}, core.PriorityNormal, false},
		"nothing set by default": {Options{}, []string{"critical"}, core.PriorityNormal, false},
	} {
		seen, inContext, known := h.prioritized(t, test.options, test.said...)
		assert.Equal(t, test.want, seen, name)
		assert.Equal(t, test.want, inContext, name)
		assert.Equal(t, test.known, known, name)
	}
}

// prioritized serves a request, through a proxy for a client inside, and returns the
// priority that rules see and that of the context of the handler.
func (h *HTTPHarness) prioritized(t *testing.T, options Options, said ...string) (seen, inContext rule.Priority, known bool) {
	t.Helper()
	p := new(Probe)
	c := h.serveOrders(t, p.NewEngine(t), options, func(x Exchange) error {
		inContext, known = core.PriorityFromContext(x.Context())
		return ok(x)
	})
	header := []string{"X-Forwarded-For", "10.1.1.1", "Authorization", "secret"}
	for _, value := range said {
		header = append(header, priority.Field, value)
	}
	require.Equal(t, http.StatusOK, c.get("/orders/7", header...).status)
	p.requireOutcome(t, h.Timeout, Succeeded)
	return p.LastCall().Priority(), inContext, known
}

func trustByAFunction(t *testing.T, h *HTTPHarness) {
	options := believing("127.0.0.0/8", core.PriorityNormal)
	asked, trusts := 0, true
	options.PriorityTrust = func(r Request) (rule.Priority, bool) {
		asked++
		return core.PriorityHigh, trusts && r.Header("Authorization") == "secret"
	}
	seen, _, _ := h.prioritized(t, options, "critical")
	assert.Equal(t, core.PriorityHigh, seen)
	assert.Equal(t, 1, asked)
	_, _, known := h.prioritized(t, options)
	assert.False(t, known)
	assert.Equal(t, 1, asked, "nobody has said a priority")
	trusts = false
	seen, _, _ = h.prioritized(t, options, "critical")
	assert.Equal(t, core.PriorityNormal, seen, "by its address")
}
