package simulate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/recording"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// replayRules draws rules of the kinds whose decisions a replay reproduces.
func replayRules(t *rapid.T) rules.Set {
	var set rules.Set
	for i, resource := range []string{"a", "b", "c"} {
		name := func(kind string) string { return fmt.Sprint(kind, i) }
		limit := float64(rapid.IntRange(1, 30).Draw(t, "limit"))
		maxWait := time.Duration(rapid.IntRange(0, 400).Draw(t, "maxWait")) * time.Millisecond
		switch rapid.IntRange(0, 4).Draw(t, "flow rule") {
		case 0:
			set.Flow = append(set.Flow, flow.Rule{Name: name("window"), Resource: resource, Limit: limit})
		case 1:
			set.Flow = append(set.Flow, flow.Rule{Name: name("bucket"), Resource: resource, Limit: limit, Algorithm: flow.TokenBucket, MaxWait: maxWait})
		case 2:
			set.Flow = append(set.Flow, flow.Rule{Name: name("throttle"), Resource: resource, Limit: limit, Algorithm: flow.Throttle, MaxWait: maxWait})
		case 3:
			set.Flow = append(set.Flow, flow.Rule{Name: name("mobile"), Resource: resource, Limit: limit, Origin: "mobile"})
		}
		switch rapid.IntRange(0, 3).Draw(t, "access rule") { // values may be hashes in the recording
		case 0:
			set.Access = append(set.Access, access.Rule{Name: name("users"), Resource: resource, Attribute: "user", Deny: rule.StringsOf("1", "x*")})
		case 1:
			set.Access = append(set.Access, access.Rule{Name: name("callers"), Resource: resource, Attribute: rule.KeyOrigin, Deny: rule.StringsOf("mob*")})
		}
		if rapid.Bool().Draw(t, "isolation") {
			set.Isolation = append(set.Isolation, isolation.Rule{
				Name: name("places"), Resource: resource, Limit: rapid.IntRange(1, 5).Draw(t, "places"), MaxWait: maxWait / 2,
			})
		}
		if rapid.Bool().Draw(t, "breaker") {
			set.Breaker = append(set.Breaker, breaker.Rule{
				Name: name("errors"), Resource: resource, Threshold: 0.4, MinCalls: 5, OpenFor: 500 * time.Millisecond,
			})
		}
		// A queue lets calls go on to the nanosecond when others leave the windows behind it: which is first
		// there is up to the goroutines.
		isPaced := len(set.Flow) > 0 && set.Flow[len(set.Flow)-1].Resource == resource && set.Flow[len(set.Flow)-1].MaxWait > 0
		if !isPaced && rapid.Bool().Draw(t, "users") {
			set.HotParam = append(set.HotParam, hotparam.Rule{Name: name("users"), Resource: resource, Param: rule.StringsOf("user"), Limit: 5})
		}
	}
	return set
}

// recordCalls makes random calls of an engine with goroutines of a bubble, and returns what was recorded.
func recordCalls(t *testing.T, set rules.Set, seed uint64, count int) *recording.Recording {
	e := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Recorder: &core.Recorder{Values: seed%2 == 0}})
	defer e.Close()
	require.NoError(t, e.Load(set))
	random := rand.New(rand.NewPCG(seed, 0))
	var all sync.WaitGroup
	for i := range count {
		if i == 1500 {
			time.Sleep(3 * time.Second) // buckets are full after that
		}
		time.Sleep(time.Duration(1+random.IntN(20_000_000)) * time.Nanosecond)
		resource := []string{"a", "b", "c"}[random.IntN(3)]
		length, outcome := time.Duration(random.IntN(300_000_000)), random.IntN(6)
		options := []core.Option{core.Int("user", int64(random.IntN(4)))}
		if random.IntN(3) == 0 {
			options = append(options, core.Origin("mobile"), core.Tokens(1+random.IntN(2)))
		}
		if random.IntN(5) == 0 {
			options = append(options, core.NoWait())
		}
		all.Go(func() {
			guard, err := e.Entry(context.Background(), resource, options...)
			if err != nil {
				return
			}
			time.Sleep(length)
			switch outcome {
			case 0, 1:
				guard.Fail(errors.New("failed"))
			case 2:
				guard.Cancel()
			}
			guard.Exit()
		})
	}
	all.Wait()
	got, err := e.Recorded(time.Hour)
	require.NoError(t, err)
	require.Len(t, got.Calls, count)
	return got
}

// The rules that were in force decide on every recorded call as they did: here the engine that recorded
// began without history, too. Goroutines that are woken at one instant go on in any order, in a replay
// in one: of some recordings of the same calls one has to be reproduced.
func TestReplayReproducesEveryDecision(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set, seed := replayRules(rt), rapid.Uint64().Draw(rt, "seed")
		var difference string
		for range 8 {
			var of *recording.Recording
			synctest.Test(t, func(t *testing.T) { of = recordCalls(t, set, seed, 300) })
			if difference = replayDifference(t, of, set); difference == "" {
				return
			}
		}
		rt.Fatal(difference)
	})
}

// replayDifference returns the first decision that a replay does not reproduce, "" if it reproduces all.
func replayDifference(t *testing.T, of *recording.Recording, set rules.Set) (first string) {
	t.Helper()
	report, err := simulate.Replay(t.Context(), reread(t, of), set, simulate.ReplayOptions{WarmUp: -1}.Each(func(i int, got simulate.ReplayedCall) {
		want := of.Calls[i]
		isSame := want.Outcome == got.Outcome && (want.Wait-got.Wait).Abs() <= time.Millisecond
		if want.Outcome == recording.Refused {
			isSame = isSame && of.Rules[want.Rule] == recording.Rule{Kind: string(got.Rule.Kind), Name: got.Rule.Name}
		}
		if !isSame && first == "" {
			first = fmt.Sprintf("call %d: %+v, replayed as %+v", i, want, got)
		}
	}))
	require.NoError(t, err)
	total := report.Total
	if first == "" && (total.NewlyPassed+total.NewlyRefused > 0 || total.Recorded.Passed != total.Replayed.Passed ||
		*total.Recorded.MaxInFlight != *total.Replayed.MaxInFlight) {
		first = fmt.Sprintf("the totals differ: %+v", total)
	}
	return first
}

// reread writes the recording and reads it.
func reread(t *testing.T, of *recording.Recording) *recording.Recording {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, recording.Write(&b, of))
	got, err := recording.Read(&b)
	require.NoError(t, err)
	return got
}

// A recording that begins in the middle of traffic is reproduced from the second window on; what a bucket
// decides, once it was full.
func TestReplayReproducesDecisionsAfterTheFirstWindow(t *testing.T) {
	set := rules.Set{
		Flow: []flow.Rule{
			{Name: "window", Resource: "a", Limit: 10},
			{Name: "bucket", Resource: "b", Limit: 10, Algorithm: flow.TokenBucket},
		},
		Isolation: []isolation.Rule{{Name: "places", Resource: "c", Limit: 2}},
	}
	var of *recording.Recording
	synctest.Test(t, func(t *testing.T) { of = recordCalls(t, set, 7, 3000) })
	cut := *of
	begin := of.Calls[1000].At
	cut.Calls = of.Calls[1000:]
	cut.Instances = []recording.Instance{{From: begin, Until: of.Instances[0].Until}}
	differs := 0
	report, err := simulate.Replay(t.Context(), &cut, set, simulate.ReplayOptions{}.Each(func(i int, got simulate.ReplayedCall) {
		if got.Outcome != cut.Calls[i].Outcome {
			differs++
			require.Equal(t, "b", of.Resources[cut.Calls[i].Resource])
			require.Less(t, i, 500, "the bucket was full")
		}
	}))
	require.NoError(t, err)
	assert.Equal(t, differs, report.Total.NewlyPassed+report.Total.NewlyRefused)
	assert.Contains(t, report.Notes[0], "before the recording is not known")
	assert.InDelta(t, 1, report.WarmUp, 1e-9)
}

// Goroutines on the clock of the system: calls come so close to each other that two of them may reach a rule
// in the other order than they have read the clock. Then two outcomes are swapped, and their number stays.
func TestReplayOfRealGoroutinesHasTheSameNumbers(t *testing.T) {
	e := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Recorder: &core.Recorder{}})
	defer e.Close()
	set := rules.Set{Flow: []flow.Rule{{Name: "bucket", Resource: "r", Limit: 2000, Algorithm: flow.TokenBucket}}}
	require.NoError(t, e.Load(set))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3000 {
				if guard, err := e.Entry(context.Background(), "r"); err == nil {
					guard.Exit()
				}
			}
		})
	}
	all.Wait()
	of, err := e.Recorded(time.Hour)
	require.NoError(t, err)
	report, err := simulate.Replay(t.Context(), of, set, simulate.ReplayOptions{WarmUp: -1})
	require.NoError(t, err)
	assert.Equal(t, 12_000, report.Total.Calls)
	assert.InDelta(t, report.Total.Recorded.Passed, report.Total.Replayed.Passed, 100, "calls that were interrupted on their way")
}

func TestReplayRefusesRecordingsThatReferToWhatTheyLack(t *testing.T) {
	for want, spoil := range map[string]func(*recording.Recording){
		"call 2 of the recording refers to a name":       func(of *recording.Recording) { of.Calls[2].Resource = 2 },
		"call 2 of the recording refers to attributes":   func(of *recording.Recording) { of.Calls[2].FirstAttribute = 2 },
		"call 3 of the recording takes no tokens":        func(of *recording.Recording) { of.Calls[3].Tokens = 0 },
		"call 4 of the recording is earlier than the":    func(of *recording.Recording) { of.Calls[4].At = 1 },
		"attribute 1 of the recording refers to a name":  func(of *recording.Recording) { of.Attributes[1].Key = 1 },
		"attribute 0 of the recording refers to a name ": func(of *recording.Recording) { of.Attributes[0].Value = 2 },
	} {
		of := tenSeconds()
		spoil(of)
		_, err := simulate.Replay(t.Context(), of, rules.Set{}, simulate.ReplayOptions{})
		require.ErrorContains(t, err, want)
	}
}

// replayed is a recording of calls of one resource, one every hundredth of a second.
func tenSeconds() *recording.Recording {
	of := &recording.Recording{
		Instances: []recording.Instance{{Name: "one", From: 100e9, Until: 110e9}},
		Resources: []string{"", "orders"}, Origins: []string{"", "mobile", "web"}, Rules: []recording.Rule{{}, {Kind: "flow", Name: "old"}},
		Keys: []string{"user"}, Values: []any{"alice", "bob"},
		Attributes: []recording.Attribute{{Value: 0}, {Value: 1}},
	}
	for i := range 1000 {
		c := recording.Call{
			At: clock.Instant(100e9 + i*10e6), Resource: 1, Origin: uint16(1 + i%2), Tokens: 1, Duration: 20 * time.Millisecond,
			SettledAfter: recording.Unknown, FirstAttribute: uint32(i / 2 % 2), AttributeCount: 1,
		}
		if i%100 >= 50 {
			c.Outcome, c.Rule, c.Duration = recording.Refused, 1, recording.Unknown
		}
		of.Calls = append(of.Calls, c)
	}
	return of
}

func TestReplayReportsWhomOtherRulesRefuse(t *testing.T) {
	old := rules.Set{Flow: []flow.Rule{{Name: "old", Resource: "orders", Limit: 50}}}
	tried := rules.Set{Flow: []flow.Rule{{Name: "phones", Resource: "orders", Limit: 10, Origin: "mobile"}}}
	report, err := simulate.Replay(t.Context(), tenSeconds(), tried, simulate.ReplayOptions{Against: &old, WarmUp: -1})
	require.NoError(t, err)
	assert.Equal(t, 1000, report.Total.Calls)
	assert.Equal(t, 500, report.Total.Recorded.Refused)
	assert.Equal(t, 500, report.Total.Against.Refused)
	assert.Equal(t, 400, report.Total.Replayed.Refused)
	require.Len(t, report.Origins, 2)
	assert.Equal(t, "web", report.Origins[0].Name)
	assert.Equal(t, 250, report.Origins[0].NewlyPassed)
	assert.Zero(t, report.Origins[0].NewlyRefused)
	assert.Equal(t, 400, report.Origins[1].Replayed.Refused)
	none, all := 0, 500
	assert.Equal(t, []simulate.ReplayRule{
		{Kind: "flow", Rule: "old", Recorded: 500, Against: &all},
		{Kind: "flow", Rule: "phones", Against: &none, Replayed: 400},
	}, report.Rules)
	assert.Equal(t, []string{"user=alice", "user=bob"}, []string{report.Values[0].Name, report.Values[1].Name})
	assert.Equal(t, 2, *report.Total.Replayed.MaxInFlight, "calls end before others of the same instant arrive")
}

func TestReplayEndsWithItsContextAndTellsHowFarItIs(t *testing.T) {
	of := tenSeconds()
	for range 4 {
		of.Calls = append(of.Calls, of.Calls...)
	}
	for i := range of.Calls {
		of.Calls[i].At = clock.Instant(100e9 + i)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	_, err := simulate.Replay(ctx, of, rules.Set{}, simulate.ReplayOptions{Progress: func(done, of int) {
		told++
		assert.Equal(t, 16_000, of)
		if done > 8000 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 2, told)
}

// A million calls.
func BenchmarkReplay(b *testing.B) {
	of := tenSeconds()
	for len(of.Calls) < 1_000_000 {
		of.Calls = append(of.Calls, of.Calls...)
	}
	of.Calls = of.Calls[:1_000_000]
	for i := range of.Calls {
		of.Calls[i].At = clock.Instant(100e9 + i*60_000)
	}
	set := rules.Set{
		Flow:      []flow.Rule{{Name: "w", Resource: "orders", Limit: 10_000}, {Name: "phones", Resource: "orders", Limit: 5000, Origin: "mobile"}},
		Isolation: []isolation.Rule{{Name: "i", Resource: "orders", Limit: 300}},
	}
	b.ReportAllocs()
	for b.Loop() {
		_, err := simulate.Replay(b.Context(), of, set, simulate.ReplayOptions{})
		require.NoError(b, err)
	}
}
