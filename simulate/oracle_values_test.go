package simulate_test

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// valueBuckets is how many parts the sliding window of a hotparam rule has.
const valueBuckets = 10

// valueOracle decides on calls by limits for each value, by the text of the
// documentation: it keeps the state of every value for ever, with exact numbers, and
// shares no code with what it tests.
type valueOracle struct {
	rules  []hotparam.Rule // complete, in the order of asking
	states map[string]*valueState
}

// valueState is the state of a value under a rule.
type valueState struct {
	tokens        *big.Rat // of a bucket
	at            int64
	last          *big.Rat // turn of a throttle, in nanoseconds; nil before the first
	counts        map[int64]int64
	underWay      int
	refusals      map[int64]int64
	penalisedTill int64
}

// valueCall is a call with attributes.
type valueCall struct {
	at, service int64
	resource    string
	tokens      int64
	attrs       map[string]any
	first       any
	ended       []func() // what its end frees
}

// decide returns the rule that refuses the call, "" if none does, and how long it waits.
func (o *valueOracle) decide(c *valueCall) (refusedBy string, wait int64) {
	undo := []func(){}
	for i := range o.rules {
		r := &o.rules[i]
		key, limit, limited := o.limitOf(r, c)
		switch {
		case limited && limit < 0: // missing: block
		case !limited:
			continue
		default:
			s := o.state(r, c, key)
			if c.at < s.penalisedTill {
				break
			}
			back, turn, ok := s.take(r, limit, c)
			if ok {
				undo, wait = append(undo, back), turn-c.at
				continue
			}
			s.refuse(r, c.at)
		}
		for _, back := range slices.Backward(undo) {
			back()
		}
		c.ended = nil
		return r.Name, 0
	}
	return "", wait
}

// limitOf returns the value of a call under a rule and its limit; -1 for a call that is
// refused for it has no value.
func (o *valueOracle) limitOf(r *hotparam.Rule, c *valueCall) (key string, limit float64, limited bool) {
	own := cmp.Or(r.Limit, float64(r.Concurrency))
	var parts []any
	for param := range r.Param.All() {
		value, ok := c.attrs[param]
		if !ok {
			switch r.Missing {
			case rule.MissingPass:
				return "", 0, false
			case rule.MissingBlock:
				return "", -1, true
			}
			return "(missing)", own, true
		}
		parts = append(parts, value)
	}
	key = fmt.Sprintf("%#v", parts)
	if len(parts) > 1 {
		return key, own, true
	}
	text, isText := parts[0].(string)
	for e := range r.Values.All() { // exact entries first
		if _, wantsText := e.Key.Text(); e.Key.String() == fmt.Sprint(parts[0]) && wantsText == isText {
			return key, e.Value, true
		}
	}
	for e := range r.Values.All() {
		glob, wantsText := e.Key.Text()
		if pattern, err := match.Compile(glob); isText && wantsText && err == nil && pattern.Matches(text) {
			return key, e.Value, true
		}
	}
	return key, own, true
}

func (o *valueOracle) state(r *hotparam.Rule, c *valueCall, key string) *valueState {
	id := r.Name + " " + key
	if !r.Shared {
		id = c.resource + " " + id
	}
	if o.states[id] == nil {
		o.states[id] = &valueState{counts: map[int64]int64{}, refusals: map[int64]int64{}, penalisedTill: -1}
	}
	return o.states[id]
}

// take takes what a call takes. It returns when the call passes and what undoes it.
func (s *valueState) take(r *hotparam.Rule, limit float64, c *valueCall) (back func(), turn int64, ok bool) {
	before := *s
	before.counts = maps.Clone(s.counts)
	back = func() { // but for what was refused meanwhile, which is nothing
		s.tokens, s.at, s.last, s.counts, s.underWay = before.tokens, before.at, before.last, before.counts, before.underWay
	}
	if limit == 0 {
		return nil, 0, false
	}
	switch {
	case r.Concurrency > 0:
		if s.underWay >= int(limit) {
			return nil, 0, false
		}
		s.underWay++
		c.ended = append(c.ended, func() { s.underWay-- })
		return back, c.at, true
	case r.Algorithm == hotparam.SlidingWindow:
		width := int64(r.Window) / valueBuckets
		bucket, sum := c.at/width, int64(0)
		for i := bucket - valueBuckets + 1; i <= bucket; i++ {
			sum += s.counts[i]
		}
		if float64(sum+c.tokens) > limit {
			return nil, 0, false
		}
		s.counts[bucket] += c.tokens
		return back, c.at, true
	case r.Algorithm == hotparam.Throttle:
		return back, 0, false // see reserve
	}
	return back, c.at, s.takeTokens(r, limit, c)
}

// takeTokens takes tokens of a bucket. What a call lacks may flow in within 0.999 ns.
func (s *valueState) takeTokens(r *hotparam.Rule, limit float64, c *valueCall) bool {
	burst := cmp.Or(r.Burst, max(1, limit)) // the default is that of the limit
	perNanosecond := new(big.Rat).Quo(rat(limit), rat(float64(r.Window)))
	full := rat(burst)
	if s.tokens == nil {
		s.tokens, s.at = full, c.at
	}
	tokens := new(big.Rat).Mul(perNanosecond, rat(float64(c.at-s.at)))
	tokens.Add(tokens, s.tokens)
	if tokens.Cmp(full) > 0 {
		tokens = full
	}
	lack := new(big.Rat).Sub(rat(float64(c.tokens)), tokens)
	if float64(c.tokens) > burst || lack.Cmp(new(big.Rat).Mul(perNanosecond, big.NewRat(999, 1000))) > 0 {
		return false
	}
	s.tokens, s.at = new(big.Rat).Neg(lack), c.at
	return true
}

// refuse counts a refusal, which may bring a penalty.
func (s *valueState) refuse(r *hotparam.Rule, at int64) {
	if r.Penalty.After == 0 {
		return
	}
	width := int64(r.Penalty.Within) / valueBuckets
	bucket, sum := at/width, int64(0)
	s.refusals[bucket]++
	for i := bucket - valueBuckets + 1; i <= bucket; i++ {
		sum += s.refusals[i]
	}
	if sum >= int64(r.Penalty.After) {
		s.penalisedTill = at + int64(r.Penalty.For)
		clear(s.refusals)
	}
}

func rat(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) }

// valueEvents orders the ends of calls.
type valueEvents []valueEvent

type valueEvent struct {
	at   int64
	call *valueCall
}

func (l valueEvents) Len() int           { return len(l) }
func (l valueEvents) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l valueEvents) Less(i, j int) bool { return l[i].at < l[j].at }
func (l *valueEvents) Push(e any)        { *l = append(*l, e.(valueEvent)) }
func (l *valueEvents) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// valueCallsOf returns the calls of a load in the order of their arrival.
func valueCallsOf(load simulate.Load) (calls []*valueCall) {
	for _, s := range load.Streams {
		times := slices.Sorted(slices.Values(s.Times))
		for k, at := range times {
			c := &valueCall{
				at: int64(at), resource: s.Resource, tokens: max(1, int64(s.Tokens)), service: int64(s.ServiceTime),
				attrs: map[string]any{},
			}
			for i, a := range s.Attrs {
				value := a.Values[k%len(a.Values)]
				c.attrs[a.Name] = value
				if i == 0 {
					c.first = value
				}
			}
			calls = append(calls, c)
		}
	}
	slices.SortStableFunc(calls, func(a, b *valueCall) int { return cmp.Compare(a.at, b.at) })
	return calls
}

// requireLikeValueOracle compares what becomes of each call to what the oracle says.
func requireLikeValueOracle(t T, set rules.Set, load simulate.Load, duration time.Duration) {
	t.Helper()
	got := run(t, set, load, duration)
	o := &valueOracle{states: map[string]*valueState{}}
	for _, r := range set.HotParam {
		o.rules = append(o.rules, hotparam.Kind().WithDefaults(r))
	}
	slices.SortFunc(o.rules, func(a, b hotparam.Rule) int { return cmp.Compare(a.Name, b.Name) })
	calls, ends := valueCallsOf(load), valueEvents{}
	require.Len(t, got.Events, len(calls))
	for i, c := range calls {
		for len(ends) > 0 && ends[0].at <= c.at {
			for _, free := range heap.Pop(&ends).(valueEvent).call.ended {
				free()
			}
		}
		want := simulate.Event{
			T: float64(c.at) / 1e9, Resource: c.resource, Outcome: simulate.Block, Kind: "hotParam",
			Value: c.first, Priority: "normal",
		}
		if want.Rule, _ = o.decide(c); want.Rule == "" {
			want.Outcome, want.Kind = simulate.Pass, ""
			want.End = number(float64(c.at+c.service) / 1e9)
			heap.Push(&ends, valueEvent{c.at + c.service, c})
		}
		want.Attrs = c.attributes(t, got.Events[i])
		require.Equal(t, want, got.Events[i], "call %d", i)
	}
}

// attributes returns those of an event, which have to be the call's, in any order.
func (c *valueCall) attributes(t T, e simulate.Event) simulate.AttrValues {
	t.Helper()
	require.Len(t, e.Attrs, len(c.attrs))
	for name, value := range c.attrs {
		require.Equal(t, value, e.Attrs.Get(name), name)
	}
	return e.Attrs
}

// drawValueLoad draws streams of calls with attributes, many of them at one instant or at
// a border of buckets.
func drawValueLoad(t *rapid.T, duration time.Duration) (load simulate.Load) {
	grid := rapid.SampledFrom([]time.Duration{1, 7 * time.Microsecond, time.Millisecond, 10 * time.Millisecond}).Draw(t, "grid")
	for range rapid.IntRange(1, 3).Draw(t, "streams") {
		s := simulate.Stream{
			Resource:    rapid.SampledFrom([]string{"r", "r", "s"}).Draw(t, "resource"),
			Tokens:      rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "tokens"),
			ServiceTime: milliseconds(t, "service time", 0, 0, 1, 30, 400),
		}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			at := grid * time.Duration(rapid.Int64Range(0, int64(min(duration/grid, 3000))-1).Draw(t, "at"))
			if rapid.Bool().Draw(t, "near a token") { // of a limit of 3, 7 or 30 in a second
				at = time.Second * time.Duration(rapid.IntRange(0, 30).Draw(t, "tokens before")) /
					time.Duration(rapid.SampledFrom([]int{3, 7, 30}).Draw(t, "limit"))
				at += time.Duration(rapid.IntRange(-2, 2).Draw(t, "off by"))
			}
			s.Times = append(s.Times, min(max(0, at), duration-1))
		}
		values := rapid.SampledFrom([][]any{
			{"u1"}, {"u1", "u2"}, {"7", int64(7)}, {"vip-1", "vip-2", "u1"}, {"u1", "u2", "u3", "banned", int64(-1)},
		}).Draw(t, "values")
		if rapid.IntRange(0, 5).Draw(t, "has a user") > 0 {
			s.Attrs = append(s.Attrs, simulate.Attr{Name: "user", Values: values})
		}
		if rapid.Bool().Draw(t, "has a tenant") {
			s.Attrs = append(s.Attrs, simulate.Attr{Name: "tenant", Values: []any{"acme", "u1/x"}})
		}
		load.Streams = append(load.Streams, s)
	}
	return load
}

// drawValueRule draws a rule that lets no call wait.
func drawValueRule(t *rapid.T, name string) hotparam.Rule {
	r := hotparam.Rule{
		Name: name, Resource: rapid.SampledFrom([]string{"r", "s"}).Draw(t, "resource"),
		Param:   rapid.SampledFrom([]rule.Strings{rule.StringsOf("user"), rule.StringsOf("user"), rule.StringsOf("tenant", "user")}).Draw(t, "param"),
		Missing: rapid.SampledFrom([]rule.Missing{"", rule.MissingShare, rule.MissingBlock}).Draw(t, "missing"),
		Window:  milliseconds(t, "window", 0, 100, 1000, 300, 60_000),
	}
	switch rapid.IntRange(0, 2).Draw(t, "algorithm") {
	case 0:
		r.Concurrency, r.Window = rapid.IntRange(1, 3).Draw(t, "concurrency"), 0
	case 1:
		r.Algorithm, r.Limit = hotparam.SlidingWindow, float64(rapid.IntRange(1, 6).Draw(t, "limit"))
	default:
		r.Limit = rapid.SampledFrom([]float64{0.5, 1, 2, 3, 7, 10, 1.0 / 3, 0.1}).Draw(t, "limit")
		r.Burst = rapid.SampledFrom([]float64{0, 0, 1, 2.5, 20}).Draw(t, "burst")
	}
	if rapid.Bool().Draw(t, "overrides") && r.Param.Len() == 1 {
		text := func(key string, value float64) rule.NumberEntry {
			return rule.NumberEntry{Key: rule.String(key), Value: value}
		}
		r.Values = rule.NumberMapOf(text("vip-1", 3), text("banned", 0), text("v*", 2),
			rule.NumberEntry{Key: rule.Int(7), Value: 4})
	}
	if rapid.IntRange(0, 3).Draw(t, "penalty") == 0 {
		r.Penalty = hotparam.Penalty{
			After:  rapid.IntRange(1, 5).Draw(t, "after"),
			Within: milliseconds(t, "within", 100, 1000, 10_000), For: milliseconds(t, "for", 10, 500, 5000),
		}
	}
	return r
}

func TestLimitsForEachValueAreByTheBook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const duration = 5 * time.Second
		var set rules.Set
		for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
			set.HotParam = append(set.HotParam, drawValueRule(t, fmt.Sprint("rule-", i)))
		}
		if len(set.HotParam) == 1 && rapid.Bool().Draw(t, "pattern") {
			r := &set.HotParam[0]
			r.Resource, r.Match, r.Shared = "", "?", rapid.Bool().Draw(t, "shared")
		}
		requireLikeValueOracleOf(t, set, drawValueLoad(t, duration), duration)
	})
}

// requireLikeValueOracleOf leaves out of the oracle the rules that a resource does not
// have.
func requireLikeValueOracleOf(t T, set rules.Set, load simulate.Load, duration time.Duration) {
	t.Helper()
	for _, resource := range []string{"r", "s"} {
		var rulesOf rules.Set
		for _, r := range set.HotParam {
			if r.Match != "" || r.Resource == resource {
				rulesOf.HotParam = append(rulesOf.HotParam, r)
			}
		}
		var loadOf simulate.Load
		for _, s := range load.Streams {
			if s.Resource == resource {
				loadOf.Streams = append(loadOf.Streams, s)
			}
		}
		if len(loadOf.Streams) > 0 {
			requireLikeValueOracle(t, rulesOf, loadOf, duration)
		}
	}
	if len(set.HotParam) == 1 && set.HotParam[0].Match != "" {
		requireLikeValueOracle(t, set, load, duration) // the resources share a rule
	}
}

// A call of a throttle passes a spacing after the one before it, or is refused if it would
// wait for longer than it may.
func TestThrottlesForEachValueAreByTheBook(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const duration = 5 * time.Second
		r := hotparam.Rule{
			Name: "throttle", Resource: "r", Param: rule.StringsOf("user"), Algorithm: hotparam.Throttle,
			Limit:   rapid.SampledFrom([]float64{1, 2, 4, 5, 8, 10, 20, 100, 0.5}).Draw(t, "limit"),
			MaxWait: milliseconds(t, "max wait", 0, 0, 100, 250, 1000, 10_000),
		}
		load := drawValueLoad(t, duration)
		load.Streams = slices.DeleteFunc(load.Streams, func(s simulate.Stream) bool { return s.Resource != "r" || len(s.Attrs) == 0 })
		if len(load.Streams) == 0 {
			t.Skip("no calls")
		}
		got := run(t, rules.Set{HotParam: []hotparam.Rule{r}}, load, duration)
		last := map[any]int64{}
		for i, c := range valueCallsOf(load) {
			user, limited := c.attrs["user"]
			turn := c.at
			if at, known := last[user]; known && limited {
				turn = max(turn, at+int64(math.Round(float64(c.tokens)*1e9/r.Limit)))
			}
			want := simulate.Event{
				T: float64(c.at) / 1e9, Resource: "r", Value: c.first, Priority: "normal",
				Outcome: simulate.Pass, Wait: float64(turn-c.at) / 1e9, End: number(float64(turn+c.service) / 1e9),
			}
			if limited && (turn-c.at > int64(r.MaxWait) || float64(c.tokens) > math.Ceil(r.Limit)) {
				want.Outcome, want.Rule, want.Kind, want.Wait, want.End = simulate.Block, r.Name, "hotParam", 0, nil
			} else if limited {
				last[user] = turn
			}
			want.Attrs = c.attributes(t, got.Events[i])
			require.Equal(t, want, got.Events[i], "call %d", i)
		}
	})
}
