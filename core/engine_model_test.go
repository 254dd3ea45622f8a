package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// model drives an engine and knows what it has promised.
type model struct {
	t       *rapid.T
	engine  *core.Engine
	clock   *clock.Virtual
	max     int // names beside those of rules
	rules   []flow.Rule
	lives   map[string]int
	ledgers map[ledgerKey]*ledger

	waiting   []*modelCall
	guards    []*core.Guard
	want      stat.Totals
	seen      map[string]stat.Totals
	forgotten stat.Totals
}

// modelCall is a call that is on its way.
type modelCall struct {
	name, origin string
	tokens       int
	arrival      *core.Arrival
	cancel       context.CancelFunc
	cancelled    bool
	waited       bool
	queues       bool // it had several queues to wait in
	woken        bool
	due          clock.Instant // 0: it is woken
}

// lateDeadline is a context whose deadline is on the calendar of a virtual clock.
type lateDeadline struct {
	context.Context
	at time.Time
}

func (d lateDeadline) Deadline() (time.Time, bool) { return d.at, true }

func TestTheEngineBehavesLikeItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			t: t, clock: clock.NewVirtual(begin), max: rapid.SampledFrom([]int{2, 50}).Draw(t, "MaxResources"),
			lives: map[string]int{}, ledgers: map[ledgerKey]*ledger{}, seen: map[string]stat.Totals{},
		}
		m.engine = core.New(core.Config{Clock: m.clock, Logger: quiet, MaxResources: m.max})
		defer m.engine.Close()
		t.Repeat(map[string]func(*rapid.T){
			"reload":  func(*rapid.T) { m.reload() },
			"change":  func(*rapid.T) { m.change() },
			"mistake": func(*rapid.T) { m.mistake() },
			"call":    func(*rapid.T) { m.calls(1) },
			"calls":   func(*rapid.T) { m.calls(6) },
			"exit":    func(*rapid.T) { m.exit() },
			"cancel":  func(*rapid.T) { m.cancel() },
			"a while": func(t *rapid.T) {
				m.advance(time.Duration(rapid.IntRange(1, 400).Draw(t, "ms")) * time.Millisecond)
			},
			"long":    func(t *rapid.T) { m.advance(time.Duration(rapid.IntRange(1, 200).Draw(t, "s")) * time.Second) },
			"explain": func(*rapid.T) { m.explain() },
		})
		m.finish()
	})
}

// reload puts another set in force, of which some rules may be the same.
func (m *model) reload() {
	var next []flow.Rule
	for _, name := range modelRules {
		switch rapid.IntRange(0, 3).Draw(m.t, name) {
		case 0:
			next = append(next, drawRule(m.t, name))
		case 1, 2:
			for _, r := range m.rules {
				if r.Name == name {
					next = append(next, r)
				}
			}
		}
	}
	m.load(next)
}

// change changes one rule in a way that keeps its state.
func (m *model) change() {
	if len(m.rules) == 0 {
		m.t.Skip("no rules")
	}
	next := slices.Clone(m.rules)
	r := &next[rapid.IntRange(0, len(next)-1).Draw(m.t, "rule")]
	switch rapid.IntRange(0, 3).Draw(m.t, "what") {
	case 0:
		r.Limit = rapid.SampledFrom([]float64{4, 6, 1, 0, 0.5, 2}).Draw(m.t, "limit")
	case 1:
		r.Shadow = !r.Shadow
	case 2:
		r.Origin = rapid.SampledFrom([]string{"", "mobile", flow.OtherOrigins}).Draw(m.t, "origin")
	case 3:
		r.Window = rapid.SampledFrom([]time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second}).Draw(m.t, "window")
	}
	m.load(next)
}

func (m *model) load(next []flow.Rule) {
	for _, r := range next {
		require.Empty(m.t, r.Validate(), "%+v", r)
	}
	before := m.rules
	m.rules = next
	require.NoError(m.t, m.engine.Load(rules.Set{Flow: next}))
	for _, was := range before {
		i := slices.IndexFunc(next, func(r flow.Rule) bool { return r.Name == was.Name })
		switch {
		case i < 0 || !keepsState(was, next[i]):
			m.lives[was.Name]++
		case next[i] != was:
			m.changed(was, next[i])
		}
	}
	m.settle()
}

// changed notes that what a rule has counted counts differently now.
func (m *model) changed(was, is flow.Rule) {
	now := m.clock.Now()
	for key, l := range m.ledgers {
		if key.rule != is.Name || key.life != m.lives[is.Name] {
			continue
		}
		if was.Window != is.Window || was.Buckets != is.Buckets || was.Strict != is.Strict {
			l.vague = now.Add(2*was.Window + 2*is.Window)
			// What the old window has let go of is forgotten, also by a longer one.
			l.passes = slices.DeleteFunc(l.passes, func(p ledgerPass) bool { return !holds(was, p.at, now) })
		}
		l.changed = len(l.passes)
	}
}

func (m *model) mistake() {
	status := m.engine.Status()
	bad := slices.Clone(m.rules)
	for i := range bad {
		bad[i].Limit++
	}
	bad = append(bad, flow.Rule{Name: "bad", Resource: "a", Limit: -1})
	require.Error(m.t, m.engine.Load(rules.Set{Flow: bad}))
	require.Equal(m.t, status, m.engine.Status())
	m.explain()
}

func (m *model) calls(n int) {
	name := rapid.SampledFrom(modelNames).Draw(m.t, "name")
	origin := rapid.SampledFrom(modelOrigins).Draw(m.t, "from")
	tokens := rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(m.t, "tokens")
	patience := rapid.SampledFrom([]time.Duration{0, 0, 300 * time.Millisecond}).Draw(m.t, "patience")
	for range n {
		m.account()
		call := &modelCall{name: name, origin: origin, tokens: tokens}
		ctx, cancel := context.WithCancel(context.Background())
		call.cancel = cancel
		if patience > 0 {
			ctx = lateDeadline{ctx, m.clock.Now().Add(patience).Time()}
		}
		if rapid.Bool().Draw(m.t, "enters") {
			m.enters(ctx, call)
		} else {
			call.arrival = m.engine.Arrive(ctx, name, func() { call.woken = true }, core.Origin(origin), core.Tokens(tokens))
			m.waiting = append(m.waiting, call)
			m.proceed(call)
		}
		m.settle()
	}
}

// enters makes a call that gives up rather than wait: Entry has ways of its own for
// those that need not.
func (m *model) enters(ctx context.Context, call *modelCall) {
	call.cancel()
	call.cancelled = true
	call.queues = len(queuesOf(applying(m.rules, call.name, call.origin))) > 1
	guard, err := m.engine.Entry(ctx, call.name, core.Origin(call.origin), core.Tokens(call.tokens))
	m.decided(call, &guard, err)
}

// proceed goes on with a call, once.
func (m *model) proceed(call *modelCall) {
	call.woken = false
	call.queues = call.queues || len(queuesOf(applying(m.rules, call.name, call.origin))) > 1
	after, done := call.arrival.Proceed()
	if !done {
		require.False(m.t, call.cancelled, "a cancelled call waits")
		if !call.waited {
			m.want.Waiting++
		}
		call.waited = true
		call.due = 0
		if after > 0 {
			call.due = m.clock.Now().Add(after)
		}
		m.account()
		return
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(c *modelCall) bool { return c == call })
	call.cancel()
	if call.waited {
		m.want.Waiting--
	}
	guard, err := call.arrival.Result()
	m.decided(call, guard, err)
}

func (m *model) decided(call *modelCall, guard *core.Guard, err error) {
	var block *core.BlockError
	switch {
	case err == nil:
		m.want.Passed++
		m.want.InFlight++
		m.guards = append(m.guards, guard)
		m.passed(call, m.account(), guard.WouldBlock())
	case errors.As(err, &block):
		m.want.Blocked++
		m.blocked(call, m.account(), block)
	default:
		require.True(m.t, call.cancelled, "%v", err)
		require.ErrorIs(m.t, err, context.Canceled)
		m.account()
	}
}

// passed checks a call that passed against every rule in force.
func (m *model) passed(call *modelCall, account string, would *core.BlockError) {
	now := m.clock.Now()
	applied := applying(m.rules, call.name, call.origin)
	for _, r := range applied {
		if r.Shadow {
			continue
		}
		l := m.ledger(r, account)
		// Of several queues each keeps its own turns apart, not the passes.
		if breach := l.breach(r, now, call.tokens, !call.queues); breach != "" {
			m.t.Fatalf("%s (%s), %s: %+v", call.name, account, breach, r)
		}
		if r.Related == "" {
			l.add(now, call.tokens, !call.queues)
		}
	}
	for _, r := range m.rules {
		if r.Related == call.name {
			m.ledger(r, "").add(now, call.tokens, false)
		}
	}
	m.shadows(call, account, applied, would)
}

func queuesOf(applied []flow.Rule) []flow.Rule {
	return slices.DeleteFunc(slices.Clone(applied), func(r flow.Rule) bool { return rank(r) != 0 })
}

func (l *ledger) add(now clock.Instant, tokens int, last bool) {
	l.passes = append(l.passes, ledgerPass{now, tokens, last})
}

// shadows checks what the guard says of shadow rules.
func (m *model) shadows(call *modelCall, account string, applied []flow.Rule, would *core.BlockError) {
	now, first, exact := m.clock.Now(), "", true
	for _, r := range applied {
		if !r.Shadow {
			continue
		}
		l := m.ledger(r, account)
		switch refuses := l.full(r, now, call.tokens); {
		case !l.exact(r, now):
			exact = exact && first != ""
			l.vague = now.Add(2 * r.Window)
		case refuses && first == "" && exact:
			first = r.Name
		case !refuses && r.Related == "":
			l.add(now, call.tokens, false)
		}
	}
	if !exact {
		return
	}
	got := ""
	if would != nil {
		got = would.Rule
	}
	require.Equal(m.t, first, got, "the first shadow rule that would have refused %s", call.name)
}

// blocked checks the reason of a refusal.
func (m *model) blocked(call *modelCall, account string, block *core.BlockError) {
	require.Equal(m.t, call.name, block.Resource)
	for _, r := range applying(m.rules, call.name, call.origin) {
		if r.Name != block.Rule {
			continue
		}
		require.False(m.t, r.Shadow, "refused by a shadow")
		if l := m.ledger(r, account); l.exact(r, m.clock.Now()) {
			require.True(m.t, l.full(r, m.clock.Now(), call.tokens), "%s refused though there is room: %+v", call.name, r)
		}
		return
	}
	if call.waited {
		return // it was in the queue of a rule that has become one for other origins
	}
	m.t.Fatalf("%s refused by %q, which does not apply", call.name, block.Rule)
}

func (m *model) ledger(r flow.Rule, account string) *ledger {
	key := ledgerKey{r.Name, m.lives[r.Name], account}
	if r.Match == "" || r.Shared || r.Related != "" {
		key.resource = ""
	}
	if m.ledgers[key] == nil {
		m.ledgers[key] = new(ledger)
	}
	return m.ledgers[key]
}

// account compares the statistics with what happened and returns the resource on
// which a call was decided since it was called last.
func (m *model) account() (decided string) {
	sum, all := m.forgotten, map[string]stat.Totals{}
	ruled := map[string]bool{}
	for _, r := range m.rules {
		ruled[r.Resource], ruled[r.Related] = true, true
	}
	free := 0
	for _, r := range m.engine.Snapshot().Resources {
		require.GreaterOrEqual(m.t, r.InFlight, int64(0), r.Name)
		require.GreaterOrEqual(m.t, r.Waiting, int64(0), r.Name)
		all[r.Name] = r.Totals
		addTotals(&sum, r.Totals)
		if before := m.seen[r.Name]; r.Passed+r.Blocked > before.Passed+before.Blocked {
			require.Empty(m.t, decided, "one call at a time")
			decided = r.Name
		}
		if !ruled[r.Name] && r.Name != core.Overflow {
			free++
		}
	}
	for name, before := range m.seen {
		if _, there := all[name]; !there {
			require.Zero(m.t, before.InFlight+before.Waiting, "%s is forgotten", name)
			addTotals(&m.forgotten, before)
			addTotals(&sum, before)
		}
	}
	m.seen = all
	_, overflowed := all[core.Overflow]
	want := [...]any{m.want.Passed, m.want.Blocked, m.want.Completed, m.want.Failed, m.want.InFlight}
	require.Equal(m.t, want, [...]any{sum.Passed, sum.Blocked, sum.Completed, sum.Failed, sum.InFlight})
	if overflowed || m.max > len(modelNames) { // else those who wait there are not shown
		require.Equal(m.t, m.want.Waiting, sum.Waiting)
	}
	return decided
}

func addTotals(to *stat.Totals, t stat.Totals) {
	to.Passed += t.Passed
	to.Blocked += t.Blocked
	to.Completed += t.Completed
	to.Failed += t.Failed
	to.InFlight += t.InFlight
	to.Waiting += t.Waiting
}

func (m *model) exit() {
	if len(m.guards) == 0 {
		m.t.Skip("no call under way")
	}
	i := rapid.IntRange(0, len(m.guards)-1).Draw(m.t, "guard")
	guard := m.guards[i]
	m.guards = slices.Delete(m.guards, i, i+1)
	m.want.InFlight--
	m.want.Completed++
	if rapid.Bool().Draw(m.t, "failed") {
		guard.Fail(context.Canceled)
		m.want.Failed++
	}
	guard.Exit()
	guard.Exit()
	m.account()
}

func (m *model) cancel() {
	if len(m.waiting) == 0 {
		m.t.Skip("nobody waits")
	}
	call := rapid.SampledFrom(m.waiting).Draw(m.t, "call")
	call.cancelled = true
	call.cancel()
	m.proceed(call)
	m.settle()
}

// settle goes on with the calls that can.
func (m *model) settle() {
	ready := func(c *modelCall) bool { return c.woken || c.due != 0 && c.due <= m.clock.Now() }
	for i := slices.IndexFunc(m.waiting, ready); i >= 0; i = slices.IndexFunc(m.waiting, ready) {
		m.proceed(m.waiting[i])
	}
}

// advance moves time from one turn to the next.
func (m *model) advance(d time.Duration) {
	end := m.clock.Now().Add(d)
	for m.clock.Now() < end {
		next := end
		for _, c := range m.waiting {
			if c.due != 0 {
				next = min(next, c.due)
			}
		}
		m.clock.Advance(next.Sub(m.clock.Now()))
		m.settle()
	}
	m.account()
}

// explain checks which rules the engine says apply.
func (m *model) explain() {
	for _, name := range modelNames {
		for _, origin := range modelOrigins {
			var want, enforced, got, ceilings []string
			for _, r := range applying(m.rules, name, origin) {
				want = append(want, r.Name)
				if !r.Shadow {
					enforced = append(enforced, r.Name)
				}
			}
			for _, a := range m.engine.Explain(name, core.Origin(origin)) {
				got = append(got, a.Rule.Name)
			}
			for _, c := range m.engine.Ceilings(name, core.Origin(origin)) {
				ceilings = append(ceilings, c.Rule.Name)
			}
			require.Equal(m.t, want, got, "%s from %q", name, origin)
			require.Equal(m.t, enforced, ceilings, "%s from %q", name, origin)
		}
	}
}

// finish lets everything end: nobody waits for ever, nothing stays refused, and
// nothing stays under way.
func (m *model) finish() {
	m.advance(time.Minute)
	require.Empty(m.t, m.waiting)
	for _, name := range modelNames {
		m.advance(10 * time.Minute)
		if !slices.ContainsFunc(applying(m.rules, name, "tv"), refusesForGood) {
			guard, err := m.engine.Entry(context.Background(), name, core.Origin("tv"))
			require.NoError(m.t, err, "after a long pause")
			m.want.Passed++
			m.want.InFlight++
			m.guards = append(m.guards, &guard)
			m.account()
		}
	}
	m.load(nil)
	for len(m.guards) > 0 {
		m.exit()
	}
	for _, r := range m.engine.Snapshot().Resources {
		assert.Zero(m.t, r.InFlight, r.Name)
		assert.Zero(m.t, r.Waiting, r.Name)
	}
}

// refusesForGood says whether a rule may refuse a call after a pause.
func refusesForGood(r flow.Rule) bool {
	return !r.Shadow && (r.Limit < 1 || r.WarmUp.Period > 0 && r.Limit < flow.DefaultColdFactor || r.Related != "")
}
