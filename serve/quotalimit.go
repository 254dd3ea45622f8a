package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

const (
	// maxFleetBuckets is how many limits a server announces to its fleet. Of others it has an
	// even part.
	maxFleetBuckets = 1000

	// fleetTolerance is by which part a server's part of a limit may vary before its data planes get
	// to know.
	fleetTolerance = 0.005
)

// quotaLimit is the limit of a bucket: the least that a rule says.
type quotaLimit struct {
	own   float64 // requests per second that rules let each server pass; infinite if none does
	burst float64 // the least limit of a window

	// What rules with scope fleet let all servers pass together.
	terms    fleet.Terms
	onOutage fleet.OnOutage
	member   fleet.Member // nil without such a rule, and in an engine without a fleet
	share    fleet.Share  // of this server
	uncount  float64      // of the demand, what was less than a token
}

// limitOf returns the limit of a bucket by the rules in force.
func (s *RLQS) limitOf(domain string, id map[string]string, now clock.Instant) *quotaLimit {
	limit := &quotaLimit{own: math.Inf(1), burst: math.Inf(1)}
	of, served := domainOf(s.engine, domain)
	if !served { // any more
		return limit
	}
	d := &ratelimit.RateLimitDescriptor{Entries: make([]*ratelimit.RateLimitDescriptor_Entry, 0, len(id))}
	for key, value := range id {
		d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	var call descriptorCall
	call.read(s.descriptors, &of, d, 0)
	for _, of := range s.engine.Quotas(call.resource, call.opts...) {
		if unservableQuota(of.Rule) == "" {
			limit.add(&of, s.engine.Fleet())
		}
	}
	if limit.member != nil {
		sum := sha256.Sum256(appendBucketKey(nil, domain, id))
		limit.terms.Key += "/" + hex.EncodeToString(sum[:12])
		limit.limitFleetBuckets(s.quotas, now)
	}
	return limit
}

// add has the limit be at most that of a rule.
func (l *quotaLimit) add(of *core.RuleSnapshot, member fleet.Member) {
	tokens := of.Quota.Limit
	if r, ok := of.Rule.Value().(flow.Rule); ok && r.Follow != (flow.Follow{}) && !of.Rule.Fleet() {
		tokens = min(tokens, of.Quota.Effective)
	}
	rate := tokens / of.Quota.Window.Seconds()
	l.burst = min(l.burst, max(tokens, 1))
	if !of.Rule.Fleet() || member == nil || tokens == 0 {
		l.own = min(l.own, rate)
		return
	}
	if l.member != nil && l.terms.PerSecond() <= rate {
		return
	}
	l.member, l.onOutage = member, onOutageOf(of.Rule)
	l.terms = fleet.Terms{Key: "rlqs/" + string(of.Kind) + "/" + of.Name, Limit: rate, Window: time.Second}
}

// onOutageOf returns what a rule of the fleet does in an outage.
func onOutageOf(r rule.Rule) fleet.OnOutage {
	switch r := r.Value().(type) {
	case flow.Rule:
		return r.Fleet.OnOutage
	case hotparam.Rule:
		return r.Fleet.OnOutage
	}
	return fleet.OutageLast
}

// limitFleetBuckets gives this server an even part of the limit, rather than one by demand, if
// it announces many limits already.
func (l *quotaLimit) limitFleetBuckets(q *quotas, now clock.Instant) {
	if len(q.fleet) >= maxFleetBuckets {
		l.own = min(l.own, l.terms.Limit/float64(max(1, l.member.Status(now).Instances)))
		l.member = nil
	}
}

// inPlaceOf has the limit go on with what another one shares with the fleet.
func (l *quotaLimit) inPlaceOf(before *quotaLimit, now clock.Instant) *quotaLimit {
	switch {
	case l.member == nil:
		before.release(now)
	case before == nil || before.share == nil || before.terms.Key != l.terms.Key:
		before.release(now)
		l.share = l.member.Share(l.terms, l.onOutage, now)
	default:
		l.share, l.uncount = before.share, before.uncount
		if before.terms != l.terms || before.onOutage != l.onOutage {
			l.share.Change(l.terms, l.onOutage, now)
		}
	}
	return l
}

// now returns how many requests per second may pass by way of this server, in place of what was
// so before.
func (l *quotaLimit) now(before float64) float64 {
	if l.share == nil {
		return l.own
	}
	limit := min(l.own, l.share.Limit())
	if math.Abs(limit-before) <= fleetTolerance*before {
		return before
	}
	return limit
}

// count tells the fleet what data planes demand in a time. Their reports come in lumps, so this
// goes by what is known of their demand.
func (l *quotaLimit) count(d *division, now clock.Instant, elapsed time.Duration) {
	if elapsed <= 0 {
		return
	}
	demand, passed := l.uncount/elapsed.Seconds(), 0.0
	for _, s := range d.shares {
		if !s.ended {
			demand += s.demand
			passed += min(s.demand, s.assignment.rate)
		}
	}
	tokens := func(perSecond float64) int32 { return int32(min(perSecond*elapsed.Seconds(), math.MaxInt32)) }
	all, through := tokens(demand), min(tokens(passed), tokens(demand))
	l.uncount = demand*elapsed.Seconds() - float64(all)
	l.share.Count(now, through, true)
	l.share.Count(now, all-through, false)
}

// release gives back what was shared with the fleet.
func (l *quotaLimit) release(now clock.Instant) {
	if l != nil && l.share != nil {
		l.share.Release(now)
		l.share = nil
	}
}

const unservablePrepaid = "rules with algorithm prepaid have a balance, and no rate that a data plane could keep to"

const unservableFixedWindow = "rules with a fixed window count by the calendar, and a data plane fills a bucket evenly"

// unservableQuota says why a rule is not the limit of a bucket, "" if it is. It reads on from the
// name of the kind.
func unservableQuota(r rule.Rule) string {
	switch {
	case r.Demotes():
		return "rules that demote refuse no call, and a data plane refuses what is over its quota"
	case r.Counts() != "":
		return unservableCounts
	}
	switch r := r.Value().(type) {
	case flow.Rule:
		switch {
		case r.Algorithm == flow.Prepaid:
			return unservablePrepaid
		case r.Algorithm == flow.FixedWindow:
			return unservableFixedWindow
		case r.Related != "":
			return "rules with related depend on the calls of another resource, which data planes do not report"
		case r.WarmUp.Period != 0:
			return "rules with warmUp depend on each call, and data planes report sums"
		}
		return ""
	case hotparam.Rule:
		switch {
		case r.Concurrency != 0:
			return unservableConcurrency
		case r.Algorithm == hotparam.Prepaid:
			return unservablePrepaid
		case r.Algorithm == hotparam.FixedWindow:
			return unservableFixedWindow
		}
		return ""
	}
	return "rules need to be asked about each call, and a data plane reports sums"
}
