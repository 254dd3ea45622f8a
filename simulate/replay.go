package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ReplayOptions are how recorded calls are replayed. The zero value is a good one.
type ReplayOptions struct {
	// Against are rules to compare with: those that were in force. Defaults to none: the replay is then
	// compared with what happened.
	Against *rules.Set

	// WarmUp is how long from the beginning of the recording calls that were refused then are not sent, so
	// that windows count, and places are taken, as they were. Their outcome is that of the recording, and
	// the report counts no calls of this time. Defaults to a second, or a tenth of the recording if that is
	// shorter; negative for a recording that began when the engines did.
	WarmUp time.Duration

	// Together has the calls of all instances go through one engine. Without it each instance has one.
	Together bool

	// Seed is of all that is random, such as how long calls last that were refused when they were
	// recorded.
	Seed uint64

	// Kinds are kinds of rules beside those that come with Penstock, see core.Config.Kinds.
	Kinds []rule.Definition

	// Lists are the lists that rules refer to by name. Defaults to none.
	Lists *list.Registry

	// onCall, when set, is called for each call in the order of the recording, when all are replayed.
	onCall func(index int, replayed replayedCall)

	// Progress, when set, is called now and then with how many of the calls have arrived, those of
	// Against too.
	Progress func(done, of int)
}

// replayedCall is what became of a call in a replay.
type replayedCall struct {
	Outcome recording.Outcome
	Wait    time.Duration
	Rule    rule.Key // that refused it
}

// Replay sends recorded calls through engines with other rules, on a virtual clock at the instants at
// which they came, and reports what would have become of them. The engines begin without history, as what
// rules knew when the recording began is not known: see [ReplayOptions.WarmUp]. A call that was refused and
// now passes lasts as long as a recorded call of its resource, drawn at random.
//
// The error is [rules.Problems] for rules that are invalid, or that of ctx, which ends a long replay.
// Replay works in the goroutine that calls it, and does not change the recording.
func Replay(ctx context.Context, of *recording.Recording, set rules.Set, options ReplayOptions) (ReplayReport, error) {
	switch {
	case ctx == nil:
		return ReplayReport{}, errors.New("simulate: the context is nil: use context.Background() if nothing is to end the replay")
	case len(of.Calls) == 0:
		return ReplayReport{}, errors.New("simulate: the recording has no calls")
	}
	if err := checkRecording(of); err != nil {
		return ReplayReport{}, err
	}
	calls := newReplayCalls(of, options)
	progress := replayProgress{of: len(of.Calls), show: options.Progress}
	var against *replay
	if options.Against != nil {
		progress.of *= 2
		against = newReplay(calls, options)
		if err := against.run(ctx, *options.Against, options.Against, &progress); err != nil {
			return ReplayReport{}, err
		}
	}
	r := newReplay(calls, options)
	if err := r.run(ctx, set, options.Against, &progress); err != nil {
		return ReplayReport{}, err
	}
	if options.onCall != nil {
		for i := range r.outcomes {
			options.onCall(i, r.replayed(i))
		}
	}
	return newReplayReport(calls, r, against, set), nil
}

// maxReplayInstant is the latest instant of calls that are replayed: far from where instants end.
const maxReplayInstant clock.Instant = 4_102_444_800 * 1e9

// checkRecording returns what would have the replay fail of a recording that was not read from a file.
func checkRecording(of *recording.Recording) error {
	before := clock.Instant(0)
	for i := range of.Calls {
		c := &of.Calls[i]
		switch {
		case c.At < before || c.Arrived() < 0 || c.At > maxReplayInstant || c.Wait < 0:
			return fmt.Errorf("simulate: call %d of the recording is earlier than the one before it, or not between 1970 and 2100", i)
		case int(c.Resource) >= len(of.Resources) || int(c.Origin) >= max(1, len(of.Origins)) ||
			int(c.Instance) >= len(of.Instances) || c.Outcome == recording.Refused && int(c.Rule) >= len(of.Rules):
			return fmt.Errorf("simulate: call %d of the recording refers to a name that it does not have", i)
		case c.Tokens < 1:
			return fmt.Errorf("simulate: call %d of the recording takes no tokens", i)
		case uint64(c.FirstAttribute)+uint64(c.AttributeCount) > uint64(len(of.Attributes)):
			return fmt.Errorf("simulate: call %d of the recording refers to attributes that it does not have", i)
		}
		before = c.At
	}
	for i, a := range of.Attributes {
		if int(a.Key) >= len(of.Keys) || !of.Hashed && a.Value >= uint64(len(of.Values)) {
			return fmt.Errorf("simulate: attribute %d of the recording refers to a name that it does not have", i)
		}
	}
	return nil
}

// replayProgress tells how far a replay is.
type replayProgress struct {
	done, of int
	show     func(done, of int)
}

// progressCalls is how many calls arrive between two looks at the context.
const progressCalls = 4096

func (p *replayProgress) step(ctx context.Context) error {
	if p.done++; p.done%progressCalls != 0 {
		return nil
	}
	if p.show != nil {
		p.show(p.done, p.of)
	}
	return ctx.Err()
}
