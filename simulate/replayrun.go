package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// replay is the calls on their way through engines.
type replay struct {
	calls   *replayCalls
	options ReplayOptions
	clock   *clock.Virtual
	engines []*core.Engine
	now     clock.Instant
	events  heap[replayEvent]
	added   uint64
	waiting int

	woken []*replayCall
	spare []*replayCall // that have ended, for others

	unjudged unjudged
	rules    []rule.Key // that have refused calls
	numbers  map[rule.Key]int32
	outcomes []replayOutcome // of each call
	inFlight inFlightCounts
	states   []StateChange
	drawn    int // calls whose end was drawn
}

// replayOutcome is what became of a call.
type replayOutcome struct {
	wait time.Duration
	rule int32 // the index of the rule; -1 for none
	what recording.Outcome
}

// replayCall is a call that is waiting or under way. When it has ended, another one takes its place.
type replayCall struct {
	index   int32 // -1 once it has ended
	arrival core.Arrival
	wake    func()
	guard   *core.Guard    // once it has passed
	context *replayContext // nil if nothing ends its wait
	timer   uint64         // the number of the event that ends its wait
	woken   bool
}

// replayContext is the context of a call that gives up waiting. Nothing waits for its Done.
type replayContext struct {
	context.Context
	deadline time.Time
	err      error
}

// Deadline and Err implement context.Context.
func (c *replayContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

func (c *replayContext) Err() error { return c.err }

// replayEvent is something that is due.
type replayEvent struct {
	at     clock.Instant
	kind   replayEventKind
	number uint64
	call   *replayCall
	index  int32           // of the call: if call has another one, this one has ended
	tokens int32           // of a settlement
	like   *recording.Call // whose end it is; nil for one that neither failed nor was ignored
}

// replayEventKind orders the events of an instant; calls arrive after them.
type replayEventKind uint8

const (
	replaySettles replayEventKind = iota
	replayEnds
	replayWaitOver
	replayGivesUp
)

func newReplay(calls *replayCalls, options ReplayOptions) *replay {
	first := calls.Calls[calls.arrivals[0]].Arrived()
	r := &replay{
		calls: calls, options: options, now: first, clock: clock.NewVirtual(first.Time()),
		numbers: make(map[rule.Key]int32), outcomes: make([]replayOutcome, len(calls.Calls)),
		inFlight: newInFlightCounts(len(calls.Resources)),
	}
	r.events.before = func(a, b replayEvent) bool {
		switch {
		case a.at != b.at:
			return a.at < b.at
		case a.kind != b.kind:
			return a.kind < b.kind
		}
		return a.number < b.number
	}
	for i := range r.outcomes {
		r.outcomes[i] = replayOutcome{rule: -1, what: recording.GaveUp} // until it is decided
	}
	return r
}

// run replays all calls. The rules of against, unless it is nil, are those that the recorded calls met.
func (r *replay) run(ctx context.Context, set rules.Set, against *rules.Set, progress *replayProgress) error {
	defer r.close()
	if err := set.Validate(); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	set, r.unjudged = r.calls.judge(set, against)
	if err := r.load(set); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	for _, index := range r.calls.arrivals {
		if err := progress.step(ctx); err != nil {
			return fmt.Errorf("simulate: after %d of %d calls: %w", progress.done, progress.of, err)
		}
		at := r.calls.Calls[index].Arrived()
		if err := r.runUntil(at); err != nil {
			return err
		}
		r.advance(at)
		if err := r.arrive(index); err != nil {
			return err
		}
	}
	return r.runUntil(math.MaxInt64) // calls that nothing ends or wakes have given up
}

func (r *replay) load(set rules.Set) error {
	count := max(1, len(r.calls.Instances))
	if r.options.Together {
		count = 1
	}
	for i := range count {
		e := core.New(core.Config{
			Clock:          r.clock,
			Logger:         slog.New(slog.DiscardHandler),
			MaxResources:   max(leastResources, len(r.calls.Resources)),
			Kinds:          r.options.Kinds,
			Lists:          r.options.Lists,
			Seed:           max(1, rand.New(rand.NewPCG(r.options.Seed, uint64(i))).Uint64()), //nolint:gosec // guards no secret
			Observer:       core.Observer{StateChanged: func(change core.StateChange) { r.stateChanged(i, change) }},
			SignalInterval: -1,
			MaxEvents:      -1,
		})
		r.engines = append(r.engines, e)
		if err := e.Load(set); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) close() {
	for _, e := range r.engines {
		e.Close()
	}
}

// maxReplayStates is how many changes of states a replay reports.
const maxReplayStates = 1000

func (r *replay) stateChanged(instance int, c core.StateChange) {
	if len(r.states) == maxReplayStates {
		return
	}
	from, _ := r.calls.Span()
	change := StateChange{
		T: seconds(c.At.Sub(from)), Resource: c.Resource, Rule: c.Rule, Kind: string(c.Kind), From: c.From, To: c.To,
	}
	if len(r.engines) > 1 {
		change.Instance = instance + 1
	}
	r.states = append(r.states, change)
}

func (r *replay) advance(to clock.Instant) {
	if to > r.now {
		r.clock.Advance(to.Sub(r.now))
		r.now = to
	}
}

// runUntil processes what is due up to an instant.
func (r *replay) runUntil(until clock.Instant) error {
	for {
		if len(r.woken) > 0 && (r.events.len() == 0 || r.events.top().at > r.now || r.events.top().kind > replayEnds) {
			c := r.woken[0]
			r.woken = r.woken[1:]
			c.woken = false
			if err := r.proceed(c); err != nil {
				return err
			}
			continue
		}
		if r.events.len() == 0 || r.events.top().at > until {
			return nil
		}
		e := r.events.pop()
		r.advance(e.at)
		if err := r.process(e); err != nil {
			return err
		}
	}
}

func (r *replay) add(e replayEvent) uint64 {
	r.added++
	e.number, e.index = r.added, e.call.index
	r.events.push(e)
	return e.number
}

func (r *replay) process(e replayEvent) error {
	c := e.call
	if c.index != e.index {
		return nil
	}
	switch e.kind {
	case replaySettles:
		c.guard.Settle(int(e.tokens))
	case replayEnds:
		r.end(c, e.like)
	case replayWaitOver:
		if e.number == c.timer {
			return r.proceed(c)
		}
	case replayGivesUp:
		if c.guard == nil {
			c.context.err = context.DeadlineExceeded
			return r.proceed(c)
		}
	}
	return nil
}

// arrive has a call arrive.
func (r *replay) arrive(index int32) error {
	call := &r.calls.Calls[index]
	switch {
	case call.Outcome != recording.Passed && r.calls.warms(call),
		call.Outcome == recording.Refused && r.unjudged.stands[call.Rule]:
		r.keep(index)
		return nil
	}
	if r.waiting++; r.waiting > maxPending {
		return fmt.Errorf("simulate: more than %d calls wait or are under way", maxPending)
	}
	c := r.newCall(index)
	ctx := context.Background()
	if at, cancelled, ok := deadlineOf(call); ok {
		c.context = &replayContext{Context: ctx}
		if ctx = c.context; !cancelled {
			c.context.deadline = at.Time()
		}
		r.add(replayEvent{at: at, kind: replayGivesUp, call: c})
	}
	e := r.engines[0]
	if len(r.engines) > 1 {
		e = r.engines[call.Instance]
	}
	c.arrival.Arrive(ctx, e, r.calls.Resources[call.Resource], c.wake, r.calls.optionsOf(call)...)
	return r.proceed(c)
}

// newCall returns a call, in the place of one that has ended if there is one.
func (r *replay) newCall(index int32) (c *replayCall) {
	if last := len(r.spare) - 1; last >= 0 {
		c, r.spare = r.spare[last], r.spare[:last]
		c.context, c.timer = nil, 0
	} else {
		c = new(replayCall)
		c.wake = func() { r.wake(c) }
	}
	c.index = index
	return c
}

// ended says that a call needs its place no more.
func (r *replay) ended(c *replayCall) {
	r.waiting--
	c.index, c.guard = -1, nil
	if !c.woken {
		r.spare = append(r.spare, c)
	}
}

func (r *replay) wake(c *replayCall) {
	if !c.woken {
		c.woken = true
		r.woken = append(r.woken, c)
	}
}

// proceed goes on with a call that is not decided yet.
func (r *replay) proceed(c *replayCall) error {
	if c.index < 0 || c.guard != nil {
		return nil // it is decided
	}
	c.timer = 0
	after, done := c.arrival.Proceed()
	switch {
	case done:
		return r.decided(c)
	case after > 0:
		c.timer = r.add(replayEvent{at: r.now.Add(after), kind: replayWaitOver, call: c})
	}
	return nil
}

// decided notes what became of a call, and has it end if it has passed.
func (r *replay) decided(c *replayCall) error {
	guard, err := c.arrival.Result()
	call := &r.calls.Calls[c.index]
	o := &r.outcomes[c.index]
	*o = replayOutcome{wait: r.now.Sub(call.Arrived()), rule: -1}
	if err != nil {
		defer r.ended(c)
		return r.notPassed(c, o, err)
	}
	c.guard = guard
	r.inFlight.begin(call.Resource)
	end := r.calls.endingOf(c.index)
	if end.drawn {
		r.drawn++
	}
	if call.Outcome == recording.Passed && call.SettledAfter >= 0 {
		r.add(replayEvent{at: r.now.Add(min(call.SettledAfter, MaxDuration)), kind: replaySettles, call: c, tokens: call.Settled})
	}
	if end.after != recording.Unknown {
		r.add(replayEvent{at: r.now.Add(min(end.after, MaxDuration)), kind: replayEnds, call: c, like: end.like})
	}
	return nil
}

func (r *replay) notPassed(c *replayCall, o *replayOutcome, err error) error {
	if c.context != nil && c.context.err != nil && err == c.context.err { //nolint:errorlint // the very error
		o.what = recording.GaveUp
		return nil
	}
	blocked, _ := err.(*core.BlockError) //nolint:errorlint // it is never wrapped
	if blocked == nil {
		return fmt.Errorf("simulate: a call of %q: %w", r.calls.Resources[r.calls.Calls[c.index].Resource], err)
	}
	o.what = recording.Refused
	o.rule = r.numberOf(rule.Key{Kind: blocked.Kind, Name: blocked.Rule})
	return nil
}

func (r *replay) numberOf(key rule.Key) int32 {
	number, known := r.numbers[key]
	if !known {
		number = int32(len(r.rules))
		r.numbers[key], r.rules = number, append(r.rules, key)
	}
	return number
}

// keep notes that a call fares as it did when it was recorded.
func (r *replay) keep(index int32) {
	call := &r.calls.Calls[index]
	o := &r.outcomes[index]
	*o = replayOutcome{wait: call.Wait, rule: -1, what: call.Outcome}
	if call.Outcome == recording.Refused {
		of := r.calls.Rules[call.Rule]
		o.rule = r.numberOf(rule.Key{Kind: rule.Kind(of.Kind), Name: of.Name})
	}
}

// end ends a call that has passed, as another one has ended.
func (r *replay) end(c *replayCall, like *recording.Call) {
	defer r.ended(c)
	r.inFlight.end(r.calls.Calls[c.index].Resource)
	switch {
	case like == nil:
	case like.Cancelled:
		c.guard.Cancel()
		return
	case like.Failed:
		c.guard.MarkFailed()
	case like.Ignored:
		c.guard.MarkIgnored()
	}
	c.guard.Exit()
}

// replayed returns what became of a call.
func (r *replay) replayed(index int) replayedCall {
	o := r.outcomes[index]
	call := replayedCall{Outcome: o.what, Wait: o.wait}
	if o.rule >= 0 {
		call.Rule = r.rules[o.rule]
	}
	return call
}

// inFlightCounts counts calls under way of each resource.
type inFlightCounts struct{ present, most []int }

func newInFlightCounts(resources int) inFlightCounts {
	return inFlightCounts{make([]int, resources+1), make([]int, resources+1)} // the last one is of all
}

func (n *inFlightCounts) begin(resource uint16) {
	for _, i := range [...]int{int(resource), len(n.present) - 1} {
		n.present[i]++
		n.most[i] = max(n.most[i], n.present[i])
	}
}

func (n *inFlightCounts) end(resource uint16) {
	n.present[resource]--
	n.present[len(n.present)-1]--
}
