package simulate_test

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/simulate"
)

// oracleCircuit is a breaker at work. It acts at the very instant of an event: it has
// timers for its probes.
type oracleCircuit struct {
	rule     breaker.Rule
	resource string
	state    string
	epoch    int // how often the state has changed
	outcomes map[int64]tally
	opened   int64
	openFor  int64

	probing   map[*tracedCall]int // the probes under way, by their numbers
	probes    int                 // so far
	endedWell int
}

type tally struct{ calls, bad int64 }

// circuitTicket is what a call has of a breaker.
type circuitTicket struct {
	circuit *oracleCircuit
	epoch   int
	probe   bool
}

// circuitsOf returns the breakers for a call, in their order.
func (o *callOracle) circuitsOf(c *tracedCall, shadow bool) (list []*oracleCircuit) {
	for _, r := range o.breakers {
		if r.Shadow != shadow || !applies(r.Resource, r.Origin, c) {
			continue
		}
		key := keyOf(r.Name, r.Shared, c)
		if o.circuits[key] == nil {
			resource := c.resource
			if r.Shared {
				resource = r.Match
			}
			o.circuits[key] = &oracleCircuit{
				rule: r, resource: resource, state: breaker.Closed, outcomes: map[int64]tally{}, openFor: int64(r.OpenFor),
			}
		}
		list = append(list, o.circuits[key])
	}
	slices.SortFunc(list, func(a, b *oracleCircuit) int {
		p, q := a.rule, b.rule
		return compareTargets(p.Shared, q.Shared, p.Origin, q.Origin, p.Match, q.Match, p.Name, q.Name)
	})
	return list
}

func (b *oracleCircuit) change(o *callOracle, to string) {
	o.states = append(o.states, simulate.StateChange{
		T: float64(o.now) / 1e9, Resource: b.resource, Rule: b.rule.Name, Kind: "breaker", From: b.state, To: to,
	})
	b.state = to
	b.epoch++
	b.outcomes = map[int64]tally{}
	b.probing = map[*tracedCall]int{}
	b.endedWell = 0
	b.opened = o.now
}

// acquire lets a call pass, or refuses it.
func (b *oracleCircuit) acquire(o *callOracle, c *tracedCall) (circuitTicket, bool) {
	if b.state == breaker.Open && o.now >= b.opened+b.openFor {
		b.change(o, breaker.HalfOpen)
	}
	switch b.state {
	case breaker.Closed:
		return circuitTicket{b, b.epoch, false}, true
	case breaker.HalfOpen:
		if len(b.probing)+b.endedWell < b.rule.Probes {
			b.probes++
			b.probing[c] = b.probes
			o.add(oracleEvent{
				at: o.now + int64(b.rule.ProbeTimeout), kind: oracleProbeTimeout, call: c, wait: b.probes, circuit: b, epoch: b.epoch,
			})
			return circuitTicket{b, b.epoch, true}, true
		}
	}
	return circuitTicket{}, false
}

func (b *oracleCircuit) giveBack(c *tracedCall, t circuitTicket) {
	if t.probe && t.epoch == b.epoch {
		delete(b.probing, c)
	}
}

// ended judges a call that has ended. One that passed before the last change of state
// counts for nothing.
func (b *oracleCircuit) ended(o *callOracle, c *tracedCall, t circuitTicket) {
	if t.epoch != b.epoch {
		return
	}
	bad := c.failed
	if b.rule.Strategy == breaker.SlowRatio {
		bad = o.now-c.passed > int64(b.rule.SlowAfter)
	}
	if t.probe {
		delete(b.probing, c)
		if bad {
			b.reopen(o)
			return
		}
		if b.endedWell++; b.endedWell == b.rule.Probes {
			b.openFor = int64(b.rule.OpenFor)
			b.change(o, breaker.Closed)
		}
		return
	}
	bucket := int64(b.rule.Window) / 10
	in := b.outcomes[o.now/bucket]
	in.calls++
	if bad {
		in.bad++
	}
	b.outcomes[o.now/bucket] = in
	if b.reached(o.now / bucket) {
		b.change(o, breaker.Open)
	}
}

// reached says whether the present bucket and the nine before reach the threshold.
func (b *oracleCircuit) reached(present int64) bool {
	var all tally
	for n := present - 9; n <= present; n++ {
		all.calls += b.outcomes[n].calls
		all.bad += b.outcomes[n].bad
	}
	if all.calls < int64(b.rule.MinCalls) {
		return false
	}
	if b.rule.Strategy == breaker.ErrorCount {
		return all.bad >= int64(b.rule.Threshold)
	}
	threshold, _ := new(big.Rat).SetString(strconv.FormatFloat(b.rule.Threshold, 'f', -1, 64))
	return big.NewRat(all.bad, all.calls).Cmp(threshold) >= 0
}

// reopen opens the breaker after a failed probing, for twice as long.
func (b *oracleCircuit) reopen(o *callOracle) {
	b.openFor = min(2*b.openFor, int64(b.rule.MaxOpenFor))
	b.change(o, breaker.Open)
}

// failsAt says whether the k-th call fails, where so many of ten do.
func failsAt(k int, ofTen float64) bool {
	tenths := int(math.Round(ofTen * 10))
	return (k+1)*tenths/10 > k*tenths/10
}
