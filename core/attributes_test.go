package core_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// fields reads attributes of calls that are maps of them.
type fields struct{ asked []string }

func (f *fields) of(call *map[string]string, key string) rule.Attribute {
	f.asked = append(f.asked, key)
	if value, ok := (*call)[key]; ok {
		return rule.String(value)
	}
	return rule.Attribute{}
}

// watcher is a rule that looks at attributes, with a limiter that lets all calls pass
// and records what it saw of them.
func watcher(keys string) (*toy, core.Imposed) {
	seen := &toy{}
	return seen, imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: keys, Attributes: keys}, seen)
}

func TestSourceIsAskedForWhatRulesLookAtOnly(t *testing.T) {
	e, _ := newEngine(t)
	source := &fields{}
	call := map[string]string{"ip": "10.0.0.1", "user": "from the source"}
	enter(e, "r", 1, core.Attributes(source.of, &call))
	assert.Empty(t, source.asked, "no rule looks at an attribute")

	ip, ipRule := watcher("ip")
	user, userRule := watcher("user")
	missing, missingRule := watcher("tenant")
	e.Impose("r", ipRule, userRule, missingRule)
	enter(e, "r", 1, core.Attributes(source.of, &call), core.String("user", "named"))
	assert.ElementsMatch(t, []string{"ip", "tenant"}, source.asked)
	assert.Equal(t, rule.String("10.0.0.1").GoString(), ip.calls[0].Attribute.GoString())
	assert.Equal(t, rule.String("named").GoString(), user.calls[0].Attribute.GoString(), "a named attribute comes first")
	assert.False(t, missing.calls[0].Attribute.IsSet())
}

func TestOriginIsAnAttribute(t *testing.T) {
	e, _ := newEngine(t)
	origin, originRule := watcher("origin")
	e.Impose("r", originRule)
	enter(e, "r", 1, core.Origin("mobile"))
	enter(e, "r", 1, core.Origin("mobile"), core.String("origin", "web"))
	enter(e, "r", 1)
	assert.Equal(t, rule.String("mobile").GoString(), origin.calls[0].Attribute.GoString())
	assert.Equal(t, rule.String("web").GoString(), origin.calls[1].Attribute.GoString())
	assert.False(t, origin.calls[2].Attribute.IsSet())
}

func TestPrefixOfAnAddressIsTheAddressIfNothingElseIsKnown(t *testing.T) {
	e, _ := newEngine(t)
	prefix, prefixRule := watcher(rule.KeyIPPrefix)
	ip, ipRule := watcher(rule.KeyIP)
	e.Impose("r", prefixRule, ipRule)
	both := map[string]string{"ip": "2001:db8::7", "ipPrefix": "2001:db8::/64"}
	enter(e, "r", 1, core.Attributes(new(fields).of, &both))
	enter(e, "r", 1, core.Attributes(new(fields).of, &map[string]string{"ip": "192.0.2.7"}))
	enter(e, "r", 1, core.Attributes(new(fields).of, &both), core.String("ip", "named"))
	enter(e, "r", 1, core.String("ipPrefix", "named"))
	enter(e, "r", 1)
	texts := func(l *toy) (list []string) {
		for _, call := range l.calls {
			list = append(list, call.Attribute.String())
		}
		return list
	}
	assert.Equal(t, []string{"2001:db8::/64", "192.0.2.7", "named", "named", ""}, texts(prefix))
	assert.Equal(t, []string{"2001:db8::7", "192.0.2.7", "named", "", ""}, texts(ip))
}

func TestNamedPrefixComesBeforeANamedAddress(t *testing.T) {
	e, _ := newEngine(t)
	prefix, prefixRule := watcher(rule.KeyIPPrefix)
	e.Impose("r", prefixRule)
	enter(e, "r", 1, core.String("ipPrefix", "prefix"), core.String("ip", "address"))
	enter(e, "r", 1, core.String("ip", "address"), core.String("ipPrefix", "prefix"))
	for _, call := range prefix.calls {
		assert.Equal(t, "prefix", call.Attribute.String())
	}
}

type contextKey string

func TestAttributesAreReadFromTheContextOfTheCall(t *testing.T) {
	e, _ := newEngine(t)
	user, userRule := watcher("user")
	ip, ipRule := watcher("ip")
	e.Impose("r", userRule, ipRule)
	fromContext := core.ContextAttributes(func(ctx context.Context, key string) rule.Attribute {
		if text, ok := ctx.Value(contextKey(key)).(string); ok {
			return rule.String(text)
		}
		return rule.Attribute{}
	})
	call := map[string]string{"user": "of the call", "ip": "192.0.2.7"}
	fromCall := core.Attributes(new(fields).of, &call)
	ctx := context.WithValue(t.Context(), contextKey("user"), "of the context")
	for _, test := range []struct {
		ctx      context.Context
		opts     []core.Option
		user, ip string
	}{
		{ctx, []core.Option{fromContext}, "of the context", ""},
		{ctx, []core.Option{core.String("user", "named"), fromContext}, "named", ""},
		{ctx, []core.Option{fromCall, fromContext}, "of the context", ""},
		{ctx, []core.Option{fromContext, fromCall}, "of the call", "192.0.2.7"},
		{nil, []core.Option{fromContext}, "", ""},
	} {
		guard, err := e.Entry(test.ctx, "r", test.opts...)
		require.NoError(t, err)
		guard.Exit()
		assert.Equal(t, test.user, user.calls[len(user.calls)-1].Attribute.String())
		assert.Equal(t, test.ip, ip.calls[len(ip.calls)-1].Attribute.String())
	}
	assert.False(t, e.Explain("r", fromContext)[0].Attributes[0].Value.IsSet())
}

// A call that waits is asked for its attributes when it goes on, from the same context.
func TestArrivalKeepsTheContextForItsAttributes(t *testing.T) {
	e, _ := newEngine(t)
	user, userRule := watcher("user")
	e.Impose("r", userRule)
	ctx := context.WithValue(t.Context(), contextKey("user"), "alice")
	arrival := e.Arrive(ctx, "r", func() {}, core.ContextAttributes(func(ctx context.Context, key string) rule.Attribute {
		return rule.String(fmt.Sprint(ctx.Value(contextKey(key))))
	}))
	_, done := arrival.Proceed()
	require.True(t, done)
	assert.Equal(t, "alice", user.calls[0].Attribute.String())
}

// Options keep what they point at alive.
func TestOptionsKeepWhatTheyNeedAlive(t *testing.T) {
	e, _ := newEngine(t)
	seen, seenRule := watcher("user")
	e.Impose("r", seenRule)
	for i := range 50 {
		want := strings.Repeat(fmt.Sprint(i), 100)
		read := func(call *[]string, _ string) rule.Attribute { return rule.String((*call)[i]) }
		call := append(make([]string, i), strings.Clone(want))
		opts := []core.Option{core.Attributes(read, &call), core.String(strings.Clone("other"), strings.Clone(want)), core.Int("n", 7)}
		runtime.GC()
		enter(e, "r", 1, opts...)
		assert.Equal(t, want, seen.calls[i].Attribute.String())
	}
}

func TestSeveralAttributesAreComposite(t *testing.T) {
	e, _ := newEngine(t)
	var seen []string
	l := &toy{decide: func(c rule.Call) rule.Decision {
		seen = append(seen, c.Attribute.String())
		return rule.Pass
	}}
	e.Impose("r", imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "1", Attributes: "tenant user beta"}, l))
	enter(e, "r", 1, core.String("tenant", "acme"), core.Int("user", 7), core.Bool("beta", true))
	enter(e, "r", 1, core.String("tenant", "acme"), core.Int("user", 7))
	assert.Equal(t, []string{"acme/7/true", ""}, seen, "a composite lacks what one of its parts lacks")
}

func TestReadingAttributesAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	e, _ := newEngine(t)
	e.Impose("r",
		imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "one", Attributes: "user"}, pass{}),
		imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "two", Attributes: "tenant user"}, pass{}),
	)
	source := core.Attributes(keyItself, t)
	ctx := context.Background()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		guard, _ := e.Entry(ctx, "r", source, core.Int("tenant", 1000))
		guard.Exit()
	}))
}

// keyItself finds every attribute in every call.
func keyItself(_ *testing.T, key string) rule.Attribute { return rule.String(key) }

// pass is a limiter that lets all calls pass.
type pass struct{ rule.Limiter }

func (pass) Acquire(rule.Call) (rule.Ticket, rule.Decision) { return 0, rule.Pass }

func (pass) Idle(clock.Instant) bool { return true }

func TestExplainTellsWhatRulesFindInTheAttributesOfACall(t *testing.T) {
	e, _ := newEngine(t)
	user, userRule := watcher("user")
	pair, pairRule := watcher("tenant user")
	_, noneRule := watcher("")
	e.Impose("r", userRule, pairRule, noneRule)
	u1 := rule.String("u1")
	user.retry, user.decide = 3*time.Second, func(c rule.Call) rule.Decision {
		if c.Attribute.Equal(u1) && c.Tokens == 2 {
			return rule.Block
		}
		return rule.Pass
	}
	var parts []rule.Attribute
	pair.retry, pair.decide = rule.Never, func(c rule.Call) rule.Decision {
		parts = append(parts, c.Attribute.Parts()...)
		return rule.Block
	}
	explained := make(map[string]core.Applied)
	for _, a := range e.Explain("r", core.String("user", "u1"), core.Int("tenant", 7), core.Tokens(2)) {
		explained[a.Name] = a
	}
	assert.Equal(t, `[{user u1}]`, fmt.Sprint(explained["user"].Attributes))
	assert.Equal(t, 3*time.Second, explained["user"].RetryAfter)
	assert.Equal(t, `[{tenant 7} {user u1}]`, fmt.Sprint(explained["tenant user"].Attributes))
	assert.Equal(t, rule.Never, explained["tenant user"].RetryAfter)
	assert.Equal(t, `[]rule.Attribute{rule.Int(7), rule.String("u1")}`, fmt.Sprintf("%#v", parts))
	assert.Nil(t, explained[""].Attributes)
	assert.Empty(t, user.calls, "no call was made")

	for _, a := range e.Explain("r") {
		for _, attribute := range a.Attributes {
			assert.False(t, attribute.Value.IsSet(), a.Name)
		}
	}
}

// lateReader is a toy that asks for the attribute of the calls that needs says.
type lateReader struct {
	toy
	needs  bool
	unread []rule.Call
}

func (l *lateReader) AcquireUnread(c rule.Call) (rule.Ticket, rule.Decision) {
	l.unread = append(l.unread, c)
	if l.needs {
		return 0, optional.NeedsAttribute
	}
	return l.Acquire(c)
}

func TestAttributeIsReadOnlyWhenTheLimiterNeedsIt(t *testing.T) {
	attributes := map[string]string{"user": "u1", "tenant": "t1"}
	for keys, want := range map[string]string{"user": "u1", "user tenant": "u1/t1"} {
		e, _ := newEngine(t)
		l, source := &lateReader{}, &fields{}
		seen := ""
		l.decide = func(c rule.Call) rule.Decision {
			seen = c.Attribute.String() // while the parts are valid
			return rule.Pass
		}
		e.Impose("r", imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "late", Attributes: keys}, l))
		assert.Equal(t, 1, enter(e, "r", 1, core.Attributes(source.of, &attributes)))
		assert.Empty(t, source.asked)

		l.needs = true
		assert.Equal(t, 1, enter(e, "r", 1, core.Attributes(source.of, &attributes)))
		assert.Equal(t, want, seen)
		assert.Len(t, source.asked, len(strings.Fields(keys)))
		assert.Equal(t, 1, enter(e, "r", 1))
		assert.Empty(t, seen, "the call does not have it")

		l.needs = false
		source.asked = nil
		l.become(always(rule.Block))
		_, other := watcher("")
		e.Impose("r", other, imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "late", Attributes: keys}, l))
		assert.Zero(t, enter(e, "r", 1, core.Attributes(source.of, &attributes)))
		assert.Empty(t, source.asked, "RetryAfter does without it too")
		for _, c := range l.unread {
			assert.False(t, c.Attribute.IsSet())
		}
	}
}

// A limiter that asks for the attribute although it has it is wrong.
func TestCallIsRefusedIfTheLimiterAsksForAnAttributeThatWasRead(t *testing.T) {
	e, _ := newEngine(t)
	l := &lateReader{needs: true}
	l.become(always(optional.NeedsAttribute))
	e.Impose("r", imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "late", Attributes: "user"}, l))
	assert.Zero(t, enter(e, "r", 1, core.String("user", "u1")))
}

// prefetcher is a toy that records what it is to prefetch.
type prefetcher struct {
	toy
	idle       bool // it has nothing to prefetch
	prefetched []string
}

func (l *prefetcher) Prefetches() bool { return !l.idle }

func (l *prefetcher) Prefetch(a rule.Attribute) {
	if !a.IsSet() {
		panic("there is nothing to prefetch")
	}
	l.prefetched = append(l.prefetched, a.String())
}

func TestAttributesOfOptionsArePrefetched(t *testing.T) {
	e, _ := newEngine(t)
	l, source := &prefetcher{}, &fields{}
	_, other := watcher("")
	e.Impose("r", other, imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "large", Attributes: "user"}, l))
	call := map[string]string{"user": "of the call"}
	for _, opts := range [][]core.Option{
		{core.String("user", "alone")},
		{core.String("user", "first"), core.Tokens(2)},
		{core.String("user", "overridden"), core.String("user", "last")},
		{core.String("tenant", "t1"), core.Inbound()},
		{core.Attributes(source.of, &call)},
		{core.Origin("mobile")},
		nil,
	} {
		assert.Equal(t, 1, enter(e, "r", 1, opts...))
	}
	assert.Equal(t, []string{"alone", "first", "last"}, l.prefetched)
	assert.Len(t, source.asked, 1, "a request is read once, when the limiter decides")
	assert.Equal(t, "of the call", l.calls[4].Attribute.String())
}

func TestNothingIsPrefetchedInVain(t *testing.T) {
	for keys, l := range map[string]*prefetcher{"user": {idle: true}, "user tenant": {}, "": {}} {
		e, _ := newEngine(t)
		e.Impose("r", imposed(rule.PhaseValue, rule.RateLimited, toyConfig{Name: "large", Attributes: keys}, l))
		assert.Equal(t, 1, enter(e, "r", 1, core.String("tenant", "t1"), core.String("user", "u1")))
		assert.Empty(t, l.prefetched, "a rule on %q", keys)
	}
}

// A step remembers where a key was that is its own: keys that are elsewhere are its own too, and
// shorter ones that begin there are not.
func TestAttributesAreFoundWhereverTheirKeysAre(t *testing.T) {
	e, _ := newEngine(t)
	seen, seenRule := watcher("user")
	e.Impose("r", seenRule)
	users := "users"
	for _, key := range []string{users[:4], strings.Clone("user"), users[:3], users, users[:4], "user", users[1:5]} {
		enter(e, "r", 1, core.String(key, "value"))
	}
	var found []bool
	for _, call := range seen.calls {
		found = append(found, call.Attribute.IsSet())
	}
	assert.Equal(t, []bool{true, true, false, false, true, true, false}, found)
}
