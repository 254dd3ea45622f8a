package serve

import (
	"context"
	"math"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// remoteAddressKey is the key of Envoy's action remote_address.
const remoteAddressKey = "remote_address"

// descriptorCall is the call that a descriptor stands for.
type descriptorCall struct {
	rls      *RLS
	domain   *rules.Domain
	entries  []*ratelimit.RateLimitDescriptor_Entry
	resource string
	origin   string
	tokens   int  // 0 only asks
	refunds  bool // gives the tokens back rather than to take them
	settles  bool // enters with one token, and takes all when it has passed
	opts     []core.Option
	guard    *core.Guard
	held     *hold // under way until a proxy ends it; nil if it is not
	decision core.Decision
}

// read maps a descriptor to a call. hits is what the request says of the tokens.
func (c *descriptorCall) read(s *RLS, domain *rules.Domain, d *ratelimit.RateLimitDescriptor, hits uint32) {
	c.rls, c.domain, c.entries = s, domain, d.GetEntries()
	c.resource = domain.ResourceOf(c.entry)
	c.tokens = max(int(min(hits, math.MaxInt32)), 1)
	if own := d.GetHitsAddend(); own != nil {
		c.tokens = int(min(own.GetValue(), math.MaxInt32))
	}
	c.refunds = d.GetIsNegativeHits()
	c.opts = make([]core.Option, 0, 5)
	c.opts = append(c.opts, core.Attributes(s.attribute, c), core.Inbound(), core.NoWait())
	if c.settles = domain.Overdraw && c.tokens > 1 && !c.refunds; c.tokens > 1 && !c.settles {
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
	c.guard = new(core.Guard)
	*c.guard, c.decision, err = c.rls.engine.Decide(ctx, c.resource, c.opts...)
	if c.tokens == 0 {
		c.giveBack()
	}
	return err
}

// hold keeps the call under way if rules count it until it ends.
func (c *descriptorCall) hold() error {
	within := c.guard.MaxAge()
	if within == 0 || c.tokens == 0 {
		return nil
	}
	if c.held = c.rls.holds.hold(c.keyOf(), c.guard, c.rls.engine.Clock().Now(), within); c.held == nil {
		return status.Errorf(codes.Unavailable, "%d calls are under way, which is the most that may be", c.rls.options.MaxHolds)
	}
	return nil
}

// refund ends a call, or gives tokens back, if the hits are negative.
func (c *descriptorCall) refund() error {
	switch engine := c.rls.engine; {
	case !c.refunds || c.tokens == 0:
		return nil
	case engine.MaxAge(c.resource, c.opts...) > 0:
		c.rls.holds.end(c.keyOf(), engine.Clock().Now())
		return nil
	default:
		if err := engine.Refund(c.resource, c.opts...); err != nil {
			return statusOf(err)
		}
		return nil
	}
}

// settle takes the tokens of a call beyond its first, though they may be more than what is left.
func (c *descriptorCall) settle() {
	if c.settles {
		c.guard.Settle(c.tokens)
	}
}

// exit ends the call, unless it goes on.
func (c *descriptorCall) exit() {
	if c.held == nil {
		c.guard.Exit()
	}
}

// giveBack gives back what the call took, if it passed.
func (c *descriptorCall) giveBack() {
	if c.held != nil {
		c.rls.holds.drop(c.held)
	}
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

// attributeOf returns the attribute of a key: the value of the entry of that key, if rules may see it.
// The address of the client is also what Envoy calls the remote address.
func (s *RLS) attributeOf(c *descriptorCall, key string) rule.Attribute {
	switch of := c.addressKey(); {
	case key == rule.KeyIP && of != "":
		return attribute.Text(s.clients.Text(clientip.Parse(c.entry(of))))
	case c.domain.Sees(key) && c.has(key):
		return attribute.Text(c.entry(key))
	case key == rule.KeyIPPrefix && of != "":
		return attribute.Text(s.clients.PrefixText(clientip.Parse(c.entry(of))))
	}
	return rule.Attribute{}
}

// addressKey returns the key of the entry that is the address of the client, "" if there is none or
// rules may not see it.
func (c *descriptorCall) addressKey() string {
	for _, key := range []string{rule.KeyIP, remoteAddressKey} {
		if c.has(key) && showsAddress(c.domain) {
			return key
		}
	}
	return ""
}
