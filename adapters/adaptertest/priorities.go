package adaptertest

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// trusting is what a test sets of the options for priorities, whatever the suite. Tests call
// from the network local.
type trusting struct {
	network string        // whose callers may choose a priority; "" for none
	most    rule.Priority // that they may choose
	own     *rule.Priority
	unread  bool // the header or key that has the priority is not read
	proxied bool // the network local is one of proxies, and the caller is in the network inside

	trust func(secret bool) (rule.Priority, bool) // whether the call has a secret; nil for none
}

const local, inside = "127.0.0.0/8", "10.0.0.0/8"

// clients returns the option Clients.
func (s *trusting) clients() (of clientip.Options) {
	if s.network != "" {
		of.PriorityCallers = []priority.Callers{{From: []netip.Prefix{netip.MustParsePrefix(s.network)}, Max: s.most}}
	}
	if s.proxied {
		of.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(local)}
	}
	return of
}

// prioritizes makes a call that says priorities and has a secret, and comes through a proxy
// for a caller inside. It returns the priority that rules see, and that of the context of the
// handler.
type prioritizes func(t *testing.T, s trusting, said ...string) (seen, inContext rule.Priority, known bool)

// checkChoices checks which priorities callers may choose.
func (call prioritizes) checkChoices(t *testing.T) {
	t.Helper()
	low := core.PriorityLow
	trusted, limited := trusting{network: local, most: core.PriorityCritical}, trusting{network: local, most: core.PriorityNormal}
	stranger := trusting{network: inside, most: core.PriorityCritical}
	byRoute, strangerByRoute, proxied, unread := trusted, stranger, stranger, trusted
	byRoute.own, strangerByRoute.own, proxied.proxied, unread.unread = &low, &low, true, true
	for name, test := range map[string]struct {
		options trusting
		said    []string
		want    rule.Priority
		known   bool
	}{
		"trusted, higher":        {trusted, []string{"critical"}, core.PriorityCritical, true},
		"trusted, lower":         {trusted, []string{"Sheddable"}, core.PrioritySheddable, true},
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
		"not read":               {unread, []string{"critical"}, core.PriorityNormal, false},
		"nothing set by default": {trusting{unread: true}, []string{"critical"}, core.PriorityNormal, false},
	} {
		seen, inContext, known := call(t, test.options, test.said...)
		assert.Equal(t, test.want, seen, name)
		assert.Equal(t, test.want, inContext, name)
		assert.Equal(t, test.known, known, name)
	}
}

// checkTrust checks that trust by a function goes before that by an address, and is asked
// only about calls that say a priority.
func (call prioritizes) checkTrust(t *testing.T) {
	t.Helper()
	asked, trusts := 0, true
	options := trusting{network: local, most: core.PriorityNormal, trust: func(secret bool) (rule.Priority, bool) {
		asked++
		return core.PriorityHigh, trusts && secret
	}}
	seen, _, _ := call(t, options, "critical")
	assert.Equal(t, core.PriorityHigh, seen)
	assert.Equal(t, 1, asked)
	_, _, known := call(t, options)
	assert.False(t, known)
	assert.Equal(t, 1, asked, "nobody has said a priority")
	trusts = false
	seen, _, _ = call(t, options, "critical")
	assert.Equal(t, core.PriorityNormal, seen, "by its address")
}
