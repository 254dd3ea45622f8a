package adaptertest

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/priority"
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
	low := rule.PriorityLow
	trusted, limited := trusting{network: local, most: rule.PriorityCritical}, trusting{network: local, most: rule.PriorityNormal}
	stranger := trusting{network: inside, most: rule.PriorityCritical}
	byRoute, strangerByRoute, proxied, unread := trusted, stranger, stranger, trusted
	byRoute.own, strangerByRoute.own, proxied.proxied, unread.unread = &low, &low, true, true
	for name, test := range map[string]struct {
		options trusting
		said    []string
		want    rule.Priority
		known   bool
	}{
		"trusted, higher":        {trusted, []string{"critical"}, rule.PriorityCritical, true},
		"trusted, lower":         {trusted, []string{"Sheddable"}, rule.PrioritySheddable, true},
		"trusted up to normal":   {limited, []string{"critical"}, rule.PriorityNormal, true},
		"trusted, normal":        {trusted, []string{"normal"}, rule.PriorityNormal, true},
		"not said":               {trusted, nil, rule.PriorityNormal, false},
		"not said, by route":     {byRoute, nil, rule.PriorityLow, true},
		"said, by route":         {byRoute, []string{"high"}, rule.PriorityHigh, true},
		"bad value":              {trusted, []string{"urgent"}, rule.PriorityNormal, false},
		"bad value, by route":    {byRoute, []string{"9"}, rule.PriorityLow, true},
		"said twice":             {trusted, []string{"low", "critical"}, rule.PriorityNormal, false},
		"not trusted":            {stranger, []string{"critical"}, rule.PriorityNormal, false},
		"not trusted, by route":  {strangerByRoute, []string{"critical"}, rule.PriorityLow, true},
		"client of a proxy":      {proxied, []string{"critical"}, rule.PriorityCritical, true},
		"not read":               {unread, []string{"critical"}, rule.PriorityNormal, false},
		"nothing set by default": {trusting{unread: true}, []string{"critical"}, rule.PriorityNormal, false},
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
	options := trusting{network: local, most: rule.PriorityNormal, trust: func(secret bool) (rule.Priority, bool) {
		asked++
		return rule.PriorityHigh, trusts && secret
	}}
	seen, _, _ := call(t, options, "critical")
	assert.Equal(t, rule.PriorityHigh, seen)
	assert.Equal(t, 1, asked)
	_, _, known := call(t, options)
	assert.False(t, known)
	assert.Equal(t, 1, asked, "nobody has said a priority")
	trusts = false
	seen, _, _ = call(t, options, "critical")
	assert.Equal(t, rule.PriorityNormal, seen, "by its address")
}
