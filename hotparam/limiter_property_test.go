package hotparam_test

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
)

// model is a rule with a state for each value, however many there are, in exact
// arithmetic and without a thought for speed.
type model struct {
	rule    hotparam.Rule
	limits  map[string]float64 // of values with a limit of their own
	values  map[string]*modelValue
	sizes   int   // changes of maxValues
	reloads int64 // each may have rounded up what a value has used
}

type modelValue struct {
	at       clock.Instant
	tokens   *big.Rat        // of a token bucket, at at
	lastPass *big.Rat        // of a throttle, in nanoseconds
	passes   []modelPass     // of a sliding window
	refusals []clock.Instant // that count for a penalty
	outUntil clock.Instant   // the end of the penalty
	underWay int             // of a concurrency
}

type modelPass struct {
	at     clock.Instant
	tokens int64
}

func newModel(r hotparam.Rule) *model {
	m := &model{limits: map[string]float64{}, values: map[string]*modelValue{}}
	m.change(r)
	return m
}

// change goes over to another version of the rule. What was used stays used, in tokens.
func (m *model) change(r hotparam.Rule) {
	before := m.rule
	for name, v := range m.values {
		if v.tokens != nil {
			m.refill(name, v.at)
			used := new(big.Rat).Sub(m.burst(name), v.tokens)
			m.rule = hotparam.Kind().WithDefaults(r)
			m.limits = limitsOf(m.rule)
			v.tokens = used.Sub(m.burst(name), used)
			m.rule = before
			m.limits = limitsOf(before)
		}
	}
	m.rule = hotparam.Kind().WithDefaults(r)
	m.limits = limitsOf(m.rule)
}

func limitsOf(r hotparam.Rule) map[string]float64 {
	limits := map[string]float64{}
	for e := range r.Values.All() {
		limits[e.Key.String()] = e.Value
	}
	return limits
}

func rat(f float64) *big.Rat {
	r, _ := new(big.Rat).SetString(fmt.Sprint(f))
	return r
}

func (m *model) limit(name string) float64 {
	if limit, ok := m.limits[name]; ok {
		return limit
	}
	return m.rule.Limit
}

func (m *model) burst(name string) *big.Rat {
	if m.rule.Burst == 0 {
		return rat(max(1, m.limit(name)))
	}
	return rat(m.rule.Burst)
}

// rate is in tokens per nanosecond.
func (m *model) rate(name string) *big.Rat {
	return new(big.Rat).Quo(rat(m.limit(name)), new(big.Rat).SetInt64(int64(m.rule.Window)))
}

func (m *model) value(name string, now clock.Instant) *modelValue {
	v := m.values[name]
	if v == nil {
		v = &modelValue{at: now}
		if m.rule.Algorithm == hotparam.TokenBucket {
			v.tokens = m.burst(name)
		}
		m.values[name] = v
	}
	return v
}

// refill lets tokens flow into the bucket of a value until an instant.
func (m *model) refill(name string, now clock.Instant) {
	v := m.values[name]
	flowed := new(big.Rat).Mul(m.rate(name), new(big.Rat).SetInt64(int64(now-v.at)))
	v.tokens = new(big.Rat).Add(v.tokens, flowed)
	if burst := m.burst(name); v.tokens.Cmp(burst) > 0 {
		v.tokens = burst
	}
	v.at = now
}

// passAt returns when a call of a throttle passes, in nanoseconds.
func (m *model) passAt(name string, now clock.Instant, tokens int32) *big.Rat {
	at, v := new(big.Rat).SetInt64(int64(now)), m.value(name, now)
	if v.lastPass == nil {
		return at
	}
	spacing := new(big.Rat).Quo(new(big.Rat).SetInt64(int64(tokens)), m.rate(name))
	if due := spacing.Add(spacing, v.lastPass); due.Cmp(at) > 0 {
		return due
	}
	return at
}

// used returns the tokens in the window of a value.
func (m *model) used(name string, now clock.Instant) (used int64) {
	bucket := int64(m.rule.Window) / hotparam.Buckets
	for _, p := range m.value(name, now).passes {
		if int64(p.at)/bucket > int64(now)/bucket-hotparam.Buckets {
			used += p.tokens
		}
	}
	return used
}

// acquire decides on a call, without a penalty. Each reload may round up by less than a
// nanosecond when the bucket of a value is full again: ifRounded is the decision if this
// can make a difference.
func (m *model) acquire(name string, now clock.Instant, tokens int32, ifRounded bool) bool {
	v, limit := m.value(name, now), m.limit(name)
	switch {
	case limit == 0 && m.rule.Concurrency == 0:
		return false
	case m.rule.Concurrency != 0:
		if v.underWay >= m.rule.Concurrency {
			return false
		}
		v.underWay++
	case m.rule.Algorithm == hotparam.TokenBucket:
		m.refill(name, now)
		lacking := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(tokens)), v.tokens)
		wait := new(big.Rat).Quo(lacking, m.rate(name)) // in nanoseconds
		atOnce := big.NewRat(999, 1000)
		if wait.Cmp(atOnce) >= 0 || new(big.Rat).SetInt64(int64(tokens)).Cmp(m.burst(name)) > 0 {
			return false
		}
		if !ifRounded && wait.Add(wait, new(big.Rat).SetInt64(m.reloads)).Cmp(atOnce) >= 0 {
			return false
		}
		v.tokens = new(big.Rat).Neg(lacking)
	case m.rule.Algorithm == hotparam.SlidingWindow:
		if m.used(name, now)+int64(tokens) > int64(limit) {
			return false
		}
		v.passes = append(v.passes, modelPass{now, int64(tokens)})
	default:
		at := m.passAt(name, now, tokens)
		if float64(tokens) > max(1, limit) || at.Cmp(new(big.Rat).SetInt64(int64(now))) > 0 {
			return false
		}
		v.lastPass = at
	}
	return true
}

// ask decides on a call, with a penalty. See acquire for ifRounded.
func (m *model) ask(name string, now clock.Instant, tokens int32, ifRounded bool) bool {
	v, p := m.value(name, now), m.rule.Penalty
	if now < v.outUntil {
		return false
	}
	if m.acquire(name, now, tokens, ifRounded) {
		return true
	}
	if p.After > 0 {
		v.refusals = append(v.refusals, now)
		bucket, count := int64(p.Within)/hotparam.Buckets, 0
		for _, at := range v.refusals {
			if int64(at)/bucket > int64(now)/bucket-hotparam.Buckets {
				count++
			}
		}
		if count >= p.After {
			v.outUntil, v.refusals = now.Add(p.For), nil
		}
	}
	return false
}

// giveBack undoes a call that has just passed.
func (m *model) giveBack(name string, now clock.Instant, tokens int32) {
	v := m.value(name, now)
	switch {
	case v.tokens != nil:
		v.tokens = new(big.Rat).Add(v.tokens, new(big.Rat).SetInt64(int64(tokens)))
	case m.rule.Concurrency != 0:
		v.underWay--
	case m.rule.Algorithm == hotparam.SlidingWindow:
		v.passes = v.passes[:len(v.passes)-1]
	}
}

// settle corrects by a token what a call took that passed at an instant.
func (m *model) settle(name string, now, start clock.Instant, tokens int32) {
	v := m.value(name, now)
	if v.tokens != nil {
		m.refill(name, now)
		v.tokens = new(big.Rat).Sub(v.tokens, new(big.Rat).SetInt64(int64(tokens)))
		return
	}
	if tokens > 0 {
		start = now
	}
	v.passes = append(v.passes, modelPass{start, int64(tokens)})
}

// owes says whether a value owes tokens already.
func (m *model) owes(name string) bool {
	v := m.values[name]
	return v.tokens != nil && v.tokens.Sign() < 0 || v.tokens == nil && len(v.passes) > 50
}

// modelRule draws a rule of an algorithm. Limits are such that a token takes a whole part
// of a nanosecond, or thirds and sevenths of one.
func modelRule(t *rapid.T, algorithm hotparam.Algorithm) hotparam.Rule {
	r := perUser(func(r *hotparam.Rule) { r.Algorithm = algorithm })
	r.Limit = float64(rapid.SampledFrom([]int{1, 2, 3, 7, 10, 1000, 21_000}).Draw(t, "limit"))
	r.Window = rapid.SampledFrom([]time.Duration{10 * time.Millisecond, time.Second, time.Minute}).Draw(t, "window")
	if algorithm == hotparam.TokenBucket {
		r.Limit = rapid.SampledFrom([]float64{r.Limit, 0.5, 2.5}).Draw(t, "fraction")
		r.Burst = rapid.SampledFrom([]float64{0, 1, 1.5, 5, 30}).Draw(t, "burst")
	}
	if rapid.Bool().Draw(t, "values") {
		r.Values = rule.NumberMapOf(text("a", 4), text("b", 0), text("c", 100))
	}
	if rapid.Bool().Draw(t, "penalty") {
		r.Penalty = hotparam.Penalty{After: rapid.IntRange(1, 5).Draw(t, "after"), Within: 100 * time.Millisecond, For: 333 * time.Millisecond}
	}
	return r
}

// step draws how far the time moves: often to the very instant at which something passes.
func (m *model) step(t *rapid.T, now clock.Instant) clock.Instant {
	spacing := int64(float64(m.rule.Window) / max(m.rule.Limit, 0.1))
	steps := []int64{0, 0, 1, spacing, spacing - 1, spacing + 1, spacing / 3, spacing * 5, int64(m.rule.Window) / 10, int64(m.rule.Window), int64(time.Hour)}
	return now + clock.Instant(rapid.SampledFrom(steps).Draw(t, "step"))
}

func TestLimitersDecideAsTheModelDoes(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []hotparam.Algorithm{hotparam.TokenBucket, hotparam.SlidingWindow, hotparam.Throttle} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { compareWithModel(t, modelRule(t, algorithm)) })
		})
	}
	t.Run("concurrency", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			r := perUser(func(r *hotparam.Rule) { r.Limit, r.Concurrency = 0, rapid.IntRange(1, 4).Draw(t, "concurrency") })
			compareWithModel(t, r)
		})
	})
}

func compareWithModel(t *rapid.T, r hotparam.Rule) {
	s := &service{t: t, now: epoch + clock.Instant(rapid.IntRange(0, 1e9).Draw(t, "start")), seed: 1}
	s.start(r)
	c := &comparison{t: t, service: s, model: newModel(r)}
	settler, settles := s.limiter.(rule.Settler)
	if c.settles = settles && r.Algorithm != hotparam.Throttle; c.settles { // from now on it reckons with it
		ticket, _ := settler.Acquire(s.call(user("first"), 1))
		settler.Settle(s.now, s.now, ticket, 1)
	}
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		s.now = c.model.step(t, s.now)
		name, tokens := names.Draw(t, "name"), rapid.SampledFrom([]int32{1, 1, 1, 2, 3, 5}).Draw(t, "tokens")
		switch rapid.SampledFrom([]string{"call", "call", "call", "give back", "retry", "done", "settle", "reload"}).Draw(t, "do") {
		case "done":
			c.done()
		case "settle":
			c.settle()
		case "reload":
			reloadBoth(t, s, c.model)
		case "retry":
			c.retry(name, tokens)
		default:
			c.call(name, tokens)
		}
	}
}

// comparison does to a limiter what it does to the model.
type comparison struct {
	t       *rapid.T
	service *service
	model   *model
	settles bool
	calls   []underWay
}

// underWay is a call that has passed.
type underWay struct {
	limiter rule.Limiter
	name    string
	ticket  rule.Ticket
	start   clock.Instant
	sizes   int // changes of the size before it passed
}

// take removes one of the calls under way and returns it.
func (c *comparison) take() underWay {
	i := rapid.IntRange(0, len(c.calls)-1).Draw(c.t, "which")
	call := c.calls[i]
	c.calls = append(c.calls[:i], c.calls[i+1:]...)
	return call
}

func (c *comparison) done() {
	if _, ok := c.service.limiter.(rule.Finisher); ok && len(c.calls) > 0 {
		call := c.take()
		call.limiter.(rule.Finisher).Done(call.ticket, rule.Exit{Now: c.service.now})
		c.model.value(call.name, c.service.now).underWay--
	}
}

func (c *comparison) settle() {
	if !c.settles || len(c.calls) == 0 {
		return
	}
	call := c.take()
	more := rapid.SampledFrom([]int32{-1, 1}).Draw(c.t, "more")
	if call.sizes != c.model.sizes { // another table has taken over: that corrects nothing there
		return
	}
	if more < 0 || !c.model.owes(call.name) {
		call.limiter.(rule.Settler).Settle(c.service.now, call.start, call.ticket, more)
		c.model.settle(call.name, c.service.now, call.start, more)
	}
}

func (c *comparison) retry(name string, tokens int32) {
	s := c.service
	wait := s.limiter.RetryAfter(s.call(user(name), tokens))
	if wait == rule.Never || s.rule.Concurrency != 0 {
		return
	}
	passes := func(at clock.Instant, ifRounded bool) bool { return c.model.wouldPass(name, at, tokens, ifRounded) }
	require.True(c.t, passes(s.now.Add(wait), true), "%s passes %v later", name, wait)
	require.True(c.t, wait == 0 || !passes(s.now.Add(wait-2), false), "%s does not pass before", name)
}

func (c *comparison) call(name string, tokens int32) {
	s := c.service
	ticket, decision := s.limiter.Acquire(s.call(user(name), tokens))
	passed := decision == rule.Pass
	require.Equal(c.t, c.model.ask(name, s.now, tokens, passed), passed, "%s takes %d at %d", name, tokens, s.now)
	if decision == rule.Block {
		told := ticket.RetryTime()
		require.Equal(c.t, s.limiter.RetryAfter(s.call(user(name), tokens)), told)
	}
	if decision != rule.Pass {
		return
	}
	if s.rule.Algorithm != hotparam.Throttle && rapid.Bool().Draw(c.t, "give back") {
		s.limiter.GiveBack(s.now, ticket, tokens)
		c.model.giveBack(name, s.now, tokens)
	} else if s.rule.Concurrency != 0 || c.settles {
		c.calls = append(c.calls, underWay{s.limiter, name, ticket, s.now, c.model.sizes})
	}
}

// wouldPass says whether a call would pass at an instant, and takes nothing.
func (m *model) wouldPass(name string, now clock.Instant, tokens int32, ifRounded bool) bool {
	copied := *m
	copied.values = map[string]*modelValue{}
	if v := m.values[name]; v != nil {
		value := *v
		copied.values[name] = &value
	}
	return now >= copied.value(name, now).outUntil && copied.acquire(name, now, tokens, ifRounded)
}

// reloadBoth changes what keeps the state of values.
func reloadBoth(t *rapid.T, s *service, m *model) {
	for name := range m.values {
		if m.values[name].tokens != nil {
			m.refill(name, s.now)
		}
	}
	require.True(t, s.reload(func(r *hotparam.Rule) {
		switch rapid.SampledFrom([]string{"limit", "burst", "size", "nothing"}).Draw(t, "change") {
		case "limit":
			switch {
			case r.Algorithm == hotparam.Throttle: // keeps the last pass to a nanosecond only
				r.MaxValues = 500
				m.sizes++
			case r.Concurrency != 0:
				r.Concurrency = rapid.IntRange(1, 5).Draw(t, "concurrency")
			default:
				r.Limit = float64(rapid.SampledFrom([]int{1, 2, 3, 10, 500}).Draw(t, "limit"))
			}
		case "burst":
			if r.Algorithm == hotparam.TokenBucket {
				r.Burst = rapid.SampledFrom([]float64{0, 1, 4, 12}).Draw(t, "burst")
			}
		case "size":
			r.MaxValues = rapid.IntRange(100, 2000).Draw(t, "size")
			m.sizes++
		}
	}))
	m.change(s.rule)
	m.reloads++
}
