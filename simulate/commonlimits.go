package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// commonLimits is what the instances share limits through, and what is known of these limits. A
// nil *commonLimits is of instances that share none.
type commonLimits struct {
	network *network
	rows    fleetRows
	outages []Outage
}

// trip is the way of a batch of requests from an instance to the backend and back. Events
// of members have one with an instance alone.
type trip struct {
	instance *instance
	batch    *exchange.Batch
	limit    string // of which places were granted, as the backend tells
	roundTrip
}

// sharesLimits says whether there are rules whose limit is that of all instances together.
func sharesLimits(set rules.Set) bool {
	for r := range set.All() {
		if r.Fleet() {
			return true
		}
	}
	return false
}

func newCommonLimits(load Load, options Options, virtual clock.Clock) *commonLimits {
	return &commonLimits{
		network: newNetwork(load, memory.New(virtual)),
		rows:    fleetRows{instances: options.Instances},
		outages: load.Fleet.Outages,
	}
}

// findShared finds out which shared limits are for the calls of each stream, and has all
// members begin. The error is [Faults].
func (s *simulation) findShared(load Load) error {
	if s.common == nil {
		return nil
	}
	for index := range s.streams {
		stream := &s.streams[index]
		for _, applied := range s.instances[0].engine.Explain(stream.resource, stream.options...) {
			if l, ok := sharedLimitOf(&applied, stream.resource); ok && hasAttributes(load.Streams[index], applied.Rule) {
				stream.shared = append(stream.shared, s.common.rows.add(l))
			}
		}
	}
	for _, i := range s.instances {
		s.listen(i)
		s.attend(i)
	}
	return s.common.rows.complete(s.options.seconds())
}

// listen has an instance be told of places that the backend grants to it.
func (s *simulation) listen(i *instance) {
	network := s.common.network
	network.store.Listen(i.member.Instance(), func(limit string) {
		if way := network.send(s.now, exchange.DefaultTimeout); way.answered {
			s.queue.add(queuedEvent{at: s.now + (way.replied-s.now)/2, kind: placesGranted, trip: &trip{instance: i, limit: limit}})
		}
	})
}

// hasAttributes says whether the calls of a stream have all the attributes that a rule looks
// at. The rule is not about others.
func hasAttributes(of Stream, r rule.Rule) bool {
	for _, key := range r.Attributes() {
		if !slices.ContainsFunc(of.Attrs, func(a Attr) bool { return a.Name == key }) {
			return false
		}
	}
	return true
}

// decided counts a call for the limits that are shared.
func (f *commonLimits) decided(c *call, blocked *core.BlockError) {
	switch {
	case f == nil:
	case blocked == nil:
		f.rows.pass(c.passed, c)
	default:
		f.rows.refuse(c, rule.Key{Kind: blocked.Kind, Name: blocked.Rule})
	}
}

// attend has the member of an instance step when it is due, which calls may have made
// earlier.
func (s *simulation) attend(i *instance) {
	if i.member == nil {
		return
	}
	due := max(s.now, i.member.Due().Sub(s.begin))
	if due > maxHorizon || i.step != 0 && i.stepAt <= due {
		return
	}
	i.stepAt = due
	i.step = s.queue.add(queuedEvent{at: due, kind: memberSteps, trip: &trip{instance: i}})
}

// stepMember lets the member of an instance do what is due, and sends its requests.
func (s *simulation) stepMember(i *instance) error {
	i.step = 0
	if !s.goesOn() {
		return nil
	}
	if i.member.Due() > s.instant() { // it has become later
		s.attend(i)
		return nil
	}
	batches := i.member.Step(s.instant())
	for _, batch := range batches {
		s.send(i, batch)
	}
	if i.idleSteps++; len(batches) > 0 || i.steppedAt != s.now {
		i.idleSteps = 0
	}
	i.steppedAt = s.now
	if i.idleSteps > maxIdleSteps {
		return fmt.Errorf("instance %d steps again and again and does nothing: this is a mistake in package fleet", i.number+1)
	}
	s.attend(i)
	return nil
}

// maxIdleSteps is how many steps of a member at one instant may do nothing.
const maxIdleSteps = 10_000

// send sends a batch of requests to the backend.
func (s *simulation) send(i *instance, batch *exchange.Batch) {
	t := &trip{instance: i, batch: batch, roundTrip: s.common.network.send(s.now, exchange.DefaultTimeout)}
	if t.made {
		s.queue.add(queuedEvent{at: t.asked, kind: backendAsked, trip: t})
	}
	s.queue.add(queuedEvent{at: t.replied, kind: replyArrives, trip: t})
	s.common.rows.sent(s.now, len(batch.Requests), t.answered)
}

// askBackend has the backend do what a batch requests.
func (s *simulation) askBackend(t *trip) {
	batch := t.batch
	if !t.answered { // what the reply would be is not for the member
		batch = &exchange.Batch{
			Requests: t.batch.Requests, Replies: make([]fleet.Reply, len(t.batch.Requests)),
			Announce: t.batch.Announce, WithInstances: t.batch.WithInstances,
		}
	}
	t.err = batch.Send(context.Background(), s.common.network.backend(s.now))
}

// takeReply gives the reply to a batch to the member, or says that there is none.
func (s *simulation) takeReply(t *trip) {
	switch {
	case !t.answered:
		t.instance.member.Fail(s.instant(), t.batch, fleet.ErrUnavailable)
	case t.err != nil:
		t.instance.member.Fail(s.instant(), t.batch, t.err)
	default:
		t.instance.member.Deliver(s.instant(), t.batch)
	}
	s.attend(t.instance)
}

// instant is the present one.
func (s *simulation) instant() clock.Instant { return s.begin.Add(s.now) }

// patience is how long calls may wait for the backend alone when there is nothing else to
// come. Members give up waiting long before.
const patience = 10 * time.Second

// goesOn says whether there is anything left to simulate but what comes again and again.
func (s *simulation) goesOn() bool {
	return s.now < s.options.Duration || s.queue.foreground > 0 ||
		s.common != nil && s.pending > 0 && s.now < s.foregroundUntil+patience
}

// endSharedSecond completes the rows of shared limits when a second is over.
func (s *simulation) endSharedSecond() {
	if s.common == nil || s.now == 0 {
		return
	}
	connected := 0
	for _, i := range s.instances {
		if i.member.Status(s.instant()).Connected {
			connected++
		}
	}
	s.common.rows.endSecond(s.now, connected)
}

// report adds the rows of shared limits to a result.
func (f *commonLimits) report(result *Result) {
	if f == nil {
		return
	}
	result.Fleet, result.Backend = f.rows.rows, f.rows.backend
	for _, o := range f.outages {
		result.Outages = append(result.Outages, OutageSpan{seconds(o.From), seconds(o.Until), o.Empty})
	}
}
