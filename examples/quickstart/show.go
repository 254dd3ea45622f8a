package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

const (
	duration = 20 // seconds of load
	pushAt   = 11 // the second in which the rule is pushed
	breakAt  = 4  // the second in which the payment service breaks
	healAt   = 9  // and in which it heals
)

// record is what the show has seen.
type record struct {
	streams []*stream
	seconds map[string][]stat.Second // by resource, one for each second of load
	limits  map[string][]float64     // likewise, as in force in the midst of each
	totals  map[string]stat.Totals   // likewise, when all was over
	pushed  time.Duration            // from the put to the rule being in force
	push    [2]int                   // the seconds in which it was put, and in which it was in force
	busy    []bool                   // the seconds in which the machine had other things to do
	gaps    []time.Duration          // between the calls of the gRPC service, as it saw them
	refusal string                   // as an HTTP client sees it
	scraped int                      // series of metrics

	broke, healed clock.Instant      // the payment service
	states        []core.StateChange // of the breaker before it
}

// show runs the load against the shop, printing a line each second, and pushes
// another rule while it runs.
func show(ctx context.Context, out io.Writer, s *shop) (*record, error) {
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	defer c.close()
	r := &record{
		streams: c.streams(), seconds: map[string][]stat.Second{},
		limits: map[string][]float64{}, totals: map[string]stat.Totals{},
	}

	start, err := s.nextSecond(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	for _, stream := range r.streams {
		load.Go(func() { stream.run(ctx) })
	}
	load.Go(func() { c.stalls.watch(ctx) })
	defer load.Wait()
	defer stop()

	printHead(out, r.inTable())
	for second := range duration {
		if second == pushAt {
			if r.pushed, err = s.push(ctx); err != nil {
				return nil, err
			}
			r.push = [2]int{second, int(s.engine.Clock().Now().Sub(start) / time.Second)}
			fmt.Fprintf(out, "     etcd put: create-limit is 40 from now on, in force after %.1f ms\n", milliseconds(r.pushed))
		}
		r.breakAndHeal(out, s, second)
		begin := start.Add(time.Duration(second) * time.Second)
		if err := s.sleepUntil(ctx, begin.Add(time.Second/2)); err != nil {
			return nil, err
		}
		r.recordLimits(s)
		if err := s.sleepUntil(ctx, begin.Add(time.Second)); err != nil {
			return nil, err
		}
		r.recordSecond(s, begin)
		r.printSecond(out, second)
		r.recordStates(out, s, start)
	}
	stop()
	load.Wait()
	return r, r.recordTotals(context.WithoutCancel(ctx), s, c, start)
}

// recordTotals records what is known once the load has ended.
func (r *record) recordTotals(ctx context.Context, s *shop, c *client, start clock.Instant) (err error) {
	for second := range duration {
		r.busy = append(r.busy, c.stalls.in(start.Add(time.Duration(second)*time.Second)))
	}
	for _, stream := range r.streams {
		if r.totals[stream.resource], err = s.totals(ctx, stream.resource); err != nil {
			return err
		}
	}
	r.gaps = s.inventory.gaps()
	if refusal := c.refusal.Load(); refusal != nil {
		r.refusal = *refusal
	}
	r.scraped, err = c.scrape(ctx)
	return err
}

// nextSecond waits for the next second to begin, on the engine's clock, and
// returns it: so that a line of the show is a second of the rules.
func (s *shop) nextSecond(ctx context.Context) (clock.Instant, error) {
	start := clock.Instant((int64(s.engine.Clock().Now())/1e9 + 1) * 1e9)
	return start, s.sleepUntil(ctx, start)
}

func (s *shop) sleepUntil(ctx context.Context, at clock.Instant) error {
	timer := s.engine.Clock().NewTimer(at.Sub(s.engine.Clock().Now()))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// push puts another limit for POST /orders into etcd and returns how long it
// took to be in force.
func (s *shop) push(ctx context.Context) (time.Duration, error) {
	for len(s.swaps) > 0 {
		<-s.swaps
	}
	began := s.engine.Clock().Now()
	if err := s.put(ctx, "orders.yaml", ordersDocumentLate); err != nil {
		return 0, err
	}
	select {
	case swap := <-s.swaps:
		return swap.At.Sub(began), nil
	case <-time.After(30 * time.Second):
		return 0, fmt.Errorf("the rule that was pushed was not in force after 30 s")
	}
}

// totals returns what the engine has counted of a resource, once no call is under way: clients
// may have their answers a little before the calls end.
func (s *shop) totals(ctx context.Context, resource string) (stat.Totals, error) {
	for range 1000 {
		if totals := s.engine.Resource(resource).Snapshot().Totals; totals.InFlight == 0 {
			return totals, nil
		}
		if err := s.sleepUntil(ctx, s.engine.Clock().Now().Add(10*time.Millisecond)); err != nil {
			return stat.Totals{}, err
		}
	}
	return s.engine.Resource(resource).Snapshot().Totals, nil
}

// recordLimits keeps the effective limits that are in force.
func (r *record) recordLimits(s *shop) {
	for _, stream := range r.streams {
		for _, rule := range s.engine.Quotas(stream.resource) {
			r.limits[stream.resource] = append(r.limits[stream.resource], rule.Quota.Effective)
		}
	}
}

// recordSecond keeps what happened in a second that is over.
func (r *record) recordSecond(s *shop, begin clock.Instant) {
	for _, stream := range r.streams {
		found := stat.Second{Start: begin} // no call came, if it is not among them
		for _, seen := range s.engine.Resource(stream.resource).Minute() {
			if seen.Start == begin {
				found = seen
			}
		}
		r.seconds[stream.resource] = append(r.seconds[stream.resource], found)
	}
}

// recordStates keeps and prints the changes of state of a second that is over.
func (r *record) recordStates(out io.Writer, s *shop, start clock.Instant) {
	for _, change := range s.states.take() {
		r.states = append(r.states, change)
		fmt.Fprintf(out, "     %s is %s, was %s: after %.2f s\n", change.Rule, change.To, change.From, change.At.Sub(start).Seconds())
	}
}

// inTable returns the streams that have a column: all but the payments, which tell of
// their breaker instead.
func (r *record) inTable() []*stream {
	return slices.DeleteFunc(slices.Clone(r.streams), func(s *stream) bool { return s.resource == pay })
}

func printHead(out io.Writer, streams []*stream) {
	fmt.Fprint(out, "    ")
	for _, s := range streams {
		fmt.Fprintf(out, " │ %-33s", fmt.Sprintf("%s, %d/s offered", s.resource, s.perSecond()))
	}
	fmt.Fprintf(out, "\nsec. %s\n", strings.Repeat("│    passed        refused  waited ", len(streams)))
}

func (r *record) printSecond(out io.Writer, second int) {
	fmt.Fprintf(out, "%3d  ", second)
	for _, s := range r.inTable() {
		seen := r.seconds[s.resource][second]
		bar := strings.Repeat("▇", int(seen.Passed*10/uint64(s.perSecond())))
		fmt.Fprintf(out, "│ %4d %-12s %5d %7d  ", seen.Passed, bar, seen.Blocked, seen.Waited)
	}
	fmt.Fprintln(out)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
