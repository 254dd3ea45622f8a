package flow

import (
	"slices"

	"github.com/penstock-go/penstock/internal/tenants"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// caller is what a queue has to know of who calls.
type caller struct {
	priority rule.Priority
	share    waitqueue.Tenant // its weight is 0 if the rule has no tenants
	by       WeightBy
}

// fairness is how the tenants of one version of a rule share its queue. It never changes.
type fairness struct {
	weights tenants.Weights
	by      WeightBy
	learns  bool // which tenants are known
	queue   *tenantsOfQueue
}

// tenantsOfQueue is what all versions of a rule have in common.
type tenantsOfQueue struct {
	hasher *valuehash.Hasher
	known  tenants.Acquaintances
}

// shareFairly returns the limiter of a version whose queue tenants share, if the rule says so.
func (l *ruleLimiter) shareFairly(seed uint64) *ruleLimiter {
	if r := l.compiled.rule; l.queue != nil && r.isFair() {
		l.fairness = &fairness{
			weights: tenants.CompileWeights(r.tenants()), by: r.WeightBy, learns: r.Newcomers == rule.NewcomersHalf,
			queue: l.queue.tenantsOf(seed),
		}
	}
	return l
}

// tenantsOf returns the tenants of the queue, which are made once.
func (q *queue) tenantsOf(seed uint64) *tenantsOfQueue {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tenants == nil {
		q.tenants = &tenantsOfQueue{hasher: valuehash.New(seed)}
	}
	return q.tenants
}

// identify says who makes a call.
func (l *ruleLimiter) identify(who *caller, c *rule.Call) {
	who.priority = c.Priority()
	if f := l.fairness; f != nil {
		f.identify(who, c)
	}
}

func (f *fairness) identify(who *caller, c *rule.Call) {
	key := f.queue.hasher.Hash(c.Attribute)
	weight, hasWeight := f.weights.Of(c.Attribute)
	known := !f.learns || f.queue.known.Knows(key, c.Attribute, hasWeight, c.Now)
	who.by, who.share = f.by, f.share(key, weight, known, c.Tokens)
}

// suppose says who makes a call of which perhaps nobody has read the attribute: then it is somebody who
// has no call waiting.
func (l *ruleLimiter) suppose(who *caller, c *rule.Call) {
	if f := l.fairness; f != nil && !c.Attribute.IsSet() {
		who.priority, who.by, who.share = c.Priority(), f.by, f.share(^uint64(0), 1, true, c.Tokens)
		return
	}
	l.identify(who, c)
}

func (f *fairness) share(key uint64, weight float64, known bool, tokens int32) waitqueue.Tenant {
	return waitqueue.Tenant{Key: key, Weight: weight, Known: known, Cost: f.by.costOf(int64(tokens))}
}

// met makes the tenant of a call known that has passed while nobody waited, now and then.
func (f *fairness) met(who *caller, c *rule.Call) {
	if f.learns && c.Attribute.IsSet() && f.queue.known.LooksAt(c.Now) {
		f.queue.known.Meet(who.share.Key, c.Now)
	}
}

// costUnit is what a token costs its tenant, or a call with [ByCalls].
const costUnit = 1 << 10

func (by WeightBy) costOf(tokens int64) int64 {
	if by == ByCalls {
		return costUnit
	}
	return tokens * costUnit
}

// tokensOf returns how many tokens calls take at most that cost so much, none of which takes more than
// most.
func (by WeightBy) tokensOf(cost int64, most int32) int64 {
	units := (cost + costUnit - 1) / costUnit
	if by == ByCalls {
		return units * int64(most)
	}
	return units
}

// isFair says whether tenants have shares.
func (r *Rule) isFair() bool { return r.FairBy != rule.Strings{} }

// tenants returns the fields that say whose calls wait.
func (r *Rule) tenants() tenants.Fields {
	return tenants.Fields{FairBy: r.FairBy, Weights: r.Weights, Mask: r.Mask}
}

func (r *Rule) attributes() []string { return slices.Collect(r.FairBy.All()) }

// mayWait returns how many tokens may wait at once.
func (r *Rule) mayWait() float64 {
	return r.Limit * r.MaxWait.Seconds() / r.Calendar.Length(r.Window).Seconds()
}

// remembered returns how many tenants that do not wait are remembered; 0 if tenants have no shares.
func (r *Rule) remembered() int {
	if !r.isFair() {
		return 0
	}
	return int(max(1, min(4*r.mayWait(), 1<<14)))
}

func (r *Rule) defaultNewcomers() rule.Newcomers {
	if r.mayWait() >= defaultNewcomersQueue {
		return rule.NewcomersHalf
	}
	return rule.NewcomersEqual
}

// validateFairness adds the mistakes in the fields for tenants.
func (r *Rule) validateFairness(f *rule.Faults) {
	if !r.isFair() {
		const noEffect = "has no effect without fairBy: remove it or set fairBy"
		for _, field := range []struct {
			name  string
			given bool
		}{
			{"weights", r.Weights.Len() > 0}, {"weightBy", r.WeightBy != ""}, {"newcomers", r.Newcomers != ""}, {"mask", r.Mask != ""},
		} {
			if field.given {
				f.Add(field.name, noEffect)
			}
		}
		return
	}
	switch {
	case r.limiterKind() == windowLimiter, r.limiterKind() == balanceLimiter:
		f.Add("fairBy", "has no effect on %s, for which no call waits: remove it, or set algorithm to %q or %q", r.limiterKind(), Throttle, TokenBucket)
	case r.Scope == rule.ScopeFleet:
		f.Add("fairBy", "has no effect with scope %q, whose calls wait in the order of their priority: remove it or scope", rule.ScopeFleet)
	case r.MaxWait == 0:
		f.Add("fairBy", "has no effect without maxWait: remove it or set maxWait")
	}
	if r.WeightBy != ByTokens && r.WeightBy != ByCalls {
		f.Add("weightBy", "is %q: must be %q or %q", r.WeightBy, ByTokens, ByCalls)
	}
	if r.Newcomers != rule.NewcomersHalf && r.Newcomers != rule.NewcomersEqual {
		f.Add("newcomers", "is %q: must be %q or %q", r.Newcomers, rule.NewcomersHalf, rule.NewcomersEqual)
	}
	r.tenants().Validate(f)
}

// describeTenants adds to a status which tenants wait, and who is in front.
func (l *ruleLimiter) describeTenants(s *rule.Status) {
	q := l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	tenants.Describe(s, &q.waiters.order, q.waiters.head, "the next pass",
		func(w *waiter) tenants.Waiting { return tenants.Waiting{Tenant: w.tenant, Since: w.arrived} },
		func(value rule.Attribute) string { return q.compiled.rule.tenants().Name(value, q.tenants.hasher) })
}

// gauges describes what status returns, in the same order.
func gauges() []rule.Gauge {
	return []rule.Gauge{
		{Name: "tenants_waiting", Help: "Tenants that have calls which wait, of a rule with fairBy."},
		{Name: "longest_waiting", Help: "The most calls of one tenant that wait, of a rule with fairBy."},
		{Name: "newcomers_waiting", Help: "Tenants that are not known and have calls which wait, of a rule with newcomers."},
	}
}
