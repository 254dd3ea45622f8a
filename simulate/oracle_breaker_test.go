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
	outcomes []outcome
	opened   int64
	openFor  int64

	running   map[*tracedCall]int // the calls under way that have not counted yet, by their numbers
	probing   map[*tracedCall]int // likewise the probes
	asked     int                 // so far
	endedWell int
	endedBad  int
}

type outcome struct {
	at  int64
	bad bool
}

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
				rule: r, resource: resource, state: breaker.Closed, running: map[*tracedCall]int{}, openFor: int64(r.OpenFor),
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
	b.outcomes = nil
	b.running, b.probing = map[*tracedCall]int{}, map[*tracedCall]int{}
	b.endedWell, b.endedBad = 0, 0
	b.opened = o.now
}

// acquire lets a call pass, or refuses it.
func (b *oracleCircuit) acquire(o *callOracle, c *tracedCall) (circuitTicket, bool) {
	if b.state == breaker.Open && o.now >= b.opened+b.openFor {
		b.change(o, breaker.HalfOpen)
	}
	switch b.state {
	case breaker.Closed:
		b.asked++
		b.running[c] = b.asked
		b.comesUp(o, c, math.MaxInt64)
		return circuitTicket{b, b.epoch, false}, true
	case breaker.HalfOpen:
		if len(b.probing)+b.endedWell+b.endedBad < b.rule.Probes {
			b.asked++
			b.probing[c] = b.asked
			b.comesUp(o, c, o.now+int64(b.rule.ProbeTimeout))
			return circuitTicket{b, b.epoch, true}, true
		}
	}
	return circuitTicket{}, false
}

// comesUp sets the timer of a call: it counts as bad then, or when it becomes slow.
func (b *oracleCircuit) comesUp(o *callOracle, c *tracedCall, at int64) {
	if b.rule.Strategy == breaker.SlowRatio {
		at = min(at, o.now+int64(b.rule.SlowAfter)+1)
	}
	if at < math.MaxInt64 {
		o.add(oracleEvent{at: at, kind: oracleProbeTimeout, call: c, wait: b.asked, circuit: b, epoch: b.epoch})
	}
}

// over counts a call as bad that has not ended, if it has not counted yet.
func (b *oracleCircuit) over(o *callOracle, c *tracedCall, number, epoch int) {
	switch {
	case epoch != b.epoch:
	case b.probing[c] == number:
		b.count(o, c, true, true)
	case b.running[c] == number:
		b.count(o, c, false, true)
	}
}

func (b *oracleCircuit) giveBack(c *tracedCall, t circuitTicket) {
	if t.epoch == b.epoch {
		delete(b.probing, c)
		delete(b.running, c)
	}
}

// ended judges a call that has ended. One that passed before the last change of state
// counts for nothing, and one that has counted already does not count again.
func (b *oracleCircuit) ended(o *callOracle, c *tracedCall, t circuitTicket) {
	if t.epoch != b.epoch || b.probing[c]+b.running[c] == 0 {
		return
	}
	bad := c.failed
	if b.rule.Strategy == breaker.SlowRatio {
		bad = o.now-c.passed > int64(b.rule.SlowAfter)
	}
	b.count(o, c, t.probe, bad)
}

func (b *oracleCircuit) count(o *callOracle, c *tracedCall, isProbe, bad bool) {
	delete(b.probing, c)
	delete(b.running, c)
	switch {
	case isProbe && bad:
		b.endedBad++
	case isProbe:
		b.endedWell++
	default:
		b.outcomes = append(b.outcomes, outcome{o.now, bad})
		if b.reached(o.now) {
			b.change(o, breaker.Open)
		}
		return
	}
	most := 1 // of bad probes: with so many it opens
	if share := b.rule.ProbeThreshold; share > 0 {
		for ratOf(most, b.rule.Probes).Cmp(decimal(share)) < 0 {
			most++
		}
	}
	switch {
	case b.endedBad >= most:
		b.reopen(o)
	case b.endedWell > b.rule.Probes-most:
		b.openFor = int64(b.rule.OpenFor)
		b.change(o, breaker.Closed)
	}
}

func decimal(x float64) *big.Rat {
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(x, 'f', -1, 64))
	return exact
}

func ratOf(part, all int) *big.Rat { return big.NewRat(int64(part), int64(all)) }

// reached says whether what counts reaches the threshold: the present bucket and the nine before, or
// the last calls.
func (b *oracleCircuit) reached(now int64) bool {
	inARow := b.rule.Strategy == breaker.Consecutive
	calls, bad, run := 0, 0, 0
	for i, outcome := range b.outcomes {
		if bucket := int64(b.rule.Window) / 10; bucket > 0 && now/bucket-outcome.at/bucket > 9 {
			continue
		}
		if last := b.rule.WindowCalls; last > 0 && i < len(b.outcomes)-last {
			continue
		}
		calls++
		run++
		if outcome.bad {
			bad++
		} else {
			run = 0
		}
	}
	switch {
	case inARow:
		return run >= int(b.rule.Threshold)
	case calls < b.rule.MinCalls:
		return false
	case b.rule.Strategy == breaker.ErrorCount:
		return bad >= int(b.rule.Threshold)
	}
	return ratOf(bad, calls).Cmp(decimal(b.rule.Threshold)) >= 0
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
