package adaptertest

import (
	"net/http"
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

// priorityOptions returns what a test sets, as options.
func priorityOptions(s trusting) Options {
	options := Options{PriorityHeader: "penstock-priority", Clients: s.clients()}
	if s.unread {
		options.PriorityHeader = ""
	}
	if s.own != nil {
		options.Priority = func(Request) rule.Priority { return *s.own }
	}
	if s.trust != nil {
		options.PriorityTrust = func(r Request) (rule.Priority, bool) { return s.trust(r.Header("Authorization") == "secret") }
	}
	return options
}

func callersChooseThePriority(t *testing.T, h *HTTPHarness) {
	prioritizes(h.prioritized).checkChoices(t)
	seen, _, _ := h.prioritized(t, trusting{network: local, most: rule.PriorityCritical}, " high")
	assert.Equal(t, rule.PriorityHigh, seen, "spaces do not count")
}

// prioritized serves a request, through a proxy for a client inside, and returns the
// priority that rules see and that of the context of the handler.
func (h *HTTPHarness) prioritized(t *testing.T, s trusting, said ...string) (seen, inContext rule.Priority, known bool) {
	t.Helper()
	p := new(Probe)
	c := h.serveOrders(t, p.NewEngine(t), priorityOptions(s), func(x Exchange) error {
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

func trustByAFunction(t *testing.T, h *HTTPHarness) { prioritizes(h.prioritized).checkTrust(t) }
