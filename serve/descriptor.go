package serve

import (
	"context"
	"math"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// remoteAddressKey is the key of Envoy's action remote_address.
const remoteAddressKey = "remote_address"

// descriptorCall is the call that a descriptor stands for.
type descriptorCall struct {
	rls      *RLS
	entries  []*ratelimit.RateLimitDescriptor_Entry
	resource string
	origin   string
	tokens   int  // 0 only asks
	refunds  bool // gives the tokens back rather than to take them
	opts     []core.Option
	guard    core.Guard
	decision core.Decision
}

// read maps a descriptor to a call. hits is what the request says of the tokens.
func (c *descriptorCall) read(s *RLS, domain, prefix string, d *ratelimit.RateLimitDescriptor, hits uint32) {
	c.rls, c.entries = s, d.GetEntries()
	c.resource = prefix + domain
	for _, key := range s.options.ResourceKeys {
		if name := c.entry(key); name != "" {
			c.resource = prefix + name
			break
		}
	}
	c.tokens = max(int(min(hits, math.MaxInt32)), 1)
	if own := d.GetHitsAddend(); own != nil {
		c.tokens = int(min(own.GetValue(), math.MaxInt32))
	}
	c.refunds = d.GetIsNegativeHits()
	c.opts = make([]core.Option, 0, 5)
	c.opts = append(c.opts, core.Attributes(s.attribute, c), core.Inbound(), core.NoWait())
	if c.tokens > 1 {
		c.opts = append(c.opts, core.Tokens(c.tokens))
	}
	if c.origin = c.entry(s.options.OriginKey); c.origin != "" {
		c.opts = append(c.opts, core.Origin(c.origin))
	}
}

// enter asks the rules, unless the call gives tokens back. The error is one other than a refusal.
func (c *descriptorCall) enter(ctx context.Context) (err error) {
	if c.refunds {
		return nil
	}
	c.guard, c.decision, err = c.rls.engine.Decide(ctx, c.resource, c.opts...)
	if c.tokens == 0 {
		c.giveBack()
	}
	return err
}

// giveBack gives back what the call took, if it passed.
func (c *descriptorCall) giveBack() {
	c.guard.Cancel()
	c.readLimits()
}

// readLimits reads the limits of a call that was not refused once more: tokens were given back.
func (c *descriptorCall) readLimits() {
	if c.decision.Refusal == nil {
		c.decision.Limits = c.rls.engine.Quotas(c.resource, c.opts...)
	}
}

// entry returns the value of the first entry of a key, "" if there is none.
func (c *descriptorCall) entry(key string) string {
	for _, e := range c.entries {
		if e.GetKey() == key {
			return e.GetValue()
		}
	}
	return ""
}

// has says whether there is an entry of a key.
func (c *descriptorCall) has(key string) bool {
	for _, e := range c.entries {
		if e.GetKey() == key {
			return true
		}
	}
	return false
}

// attributeOf returns the attribute of a key: the value of the entry of that key. The address of
// the client is also what Envoy calls the remote address.
func (s *RLS) attributeOf(c *descriptorCall, key string) rule.Attribute {
	switch {
	case c.has(key):
		if key == rule.KeyIP {
			return s.address(c, key)
		}
		return attribute.Text(c.entry(key))
	case key == rule.KeyIP && c.has(remoteAddressKey):
		return s.address(c, remoteAddressKey)
	case key == rule.KeyIPPrefix && c.has(rule.KeyIP):
		return attribute.Text(s.clients.PrefixText(clientip.Parse(c.entry(rule.KeyIP))))
	case key == rule.KeyIPPrefix && c.has(remoteAddressKey):
		return attribute.Text(s.clients.PrefixText(clientip.Parse(c.entry(remoteAddressKey))))
	}
	return rule.Attribute{}
}

func (s *RLS) address(c *descriptorCall, key string) rule.Attribute {
	return attribute.Text(s.clients.Text(clientip.Parse(c.entry(key))))
}
