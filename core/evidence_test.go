package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// heldSource delivers documents when the test says so, and keeps its sink.
type heldSource struct {
	sink chan core.Sink
}

func (*heldSource) Name() string { return "held" }

func (s *heldSource) Run(ctx context.Context, sink core.Sink) error {
	s.sink <- sink
	<-ctx.Done()
	return ctx.Err()
}

// follow returns an engine with a virtual clock, and the sink of a source that it follows.
func followHeld(t *testing.T) (*core.Engine, *clock.Virtual, core.Sink) {
	t.Helper()
	e, now := newEngine(t)
	s := &heldSource{make(chan core.Sink)}
	require.NoError(t, e.Follow(t.Context(), s))
	return e, now, <-s.sink
}

// deliver puts one document in force, in place of all that the source had.
func deliver(t *testing.T, sink core.Sink, text string) {
	t.Helper()
	sink.Apply(core.Change{Complete: true, Documents: []core.Document{{Name: "a.yaml", Data: []byte(text)}}})
	document, ok := sink.Document("a.yaml")
	require.True(t, ok)
	require.NoError(t, document.Rejected)
}

// missing returns what is missing of the rules of the source, by name.
func missing(sink core.Sink) map[string]string {
	found := make(map[string]string)
	for _, r := range sink.Status().Unmatched {
		found[r.Key.Name] = fmt.Sprint(r.Missing, r.Attributes)
	}
	return found
}

func TestStatusOfASourceSaysWhatIsMissingOfItsRules(t *testing.T) {
	e, _, sink := followHeld(t)
	call := func(name string, opts ...core.Option) {
		t.Helper()
		guard, err := e.Entry(t.Context(), name, opts...)
		require.NoError(t, err)
		guard.Exit()
	}
	call("a")
	deliver(t, sink, `
flow:
  - {name: known, resource: a, limit: 9}
  - {name: typo, resource: aa, limit: 9}
  - {name: pattern, match: "a*", limit: 9}
  - {name: pattern-typo, match: "b*", limit: 9}
  - {name: mobile, resource: a, origin: mobile, limit: 9}
  - {name: others, resource: a, origin: other, limit: 9}
hotParam:
  - {name: per-user, resource: a, param: user, limit: 9}
  - {name: composite, resource: a, param: [tenant, user], limit: 9}
`)
	assert.Equal(t, map[string]string{
		"known": "call[]", "typo": "resource[]", "pattern": "call[]", "pattern-typo": "resource[]", "mobile": "call[]", "others": "call[]",
		"per-user": "call[user]", "composite": "call[tenant user]",
	}, missing(sink))

	e.Explain("aa", core.String("user", "alice"))
	call("a")
	assert.Equal(t, map[string]string{
		"typo": "resource[]", "pattern-typo": "resource[]", "mobile": "origin[]",
		"per-user": "attribute[user]", "composite": "attribute[tenant user]",
	}, missing(sink))

	call("a", core.Origin("mobile"), core.String("user", "alice"))
	assert.Equal(t, map[string]string{
		"typo": "resource[]", "pattern-typo": "resource[]", "composite": "attribute[tenant]",
	}, missing(sink))
	u := sink.Status().Unmatched[2]
	assert.Equal(t, "a.yaml", u.Document)
	assert.Equal(t, `hotParam "composite"`, u.Key.String())
	assert.Equal(t, e.Status().Sources[0].Unmatched, sink.Status().Unmatched)

	call("aa", core.String("tenant", "t"), core.String("user", "u"))
	call("b1")
	call("a", core.String("tenant", "t"), core.String("user", "u"))
	assert.Empty(t, missing(sink))

	// Another attribute, another origin: what was seen of the others says nothing of these.
	deliver(t, sink, `
flow: [{name: mobile, resource: a, origin: web, limit: 9}]
hotParam: [{name: per-user, resource: a, param: usr, limit: 9}]
`)
	assert.Equal(t, map[string]string{"mobile": "origin[]", "per-user": "call[usr]"}, missing(sink), "before a call has come")
	call("a", core.String("user", "alice"))
	assert.Equal(t, map[string]string{"mobile": "origin[]", "per-user": "attribute[usr]"}, missing(sink))
	call("a", core.Origin("web"), core.String("usr", "alice"))
	assert.Empty(t, missing(sink))
}

// Between two calls of a name its resource may be forgotten. That it was called is not.
func TestRuleForANameThatWasForgottenIsNotMissingItsResource(t *testing.T) {
	e, now, sink := followHeld(t)
	enter(e, "rare:1", 1)
	now.Advance(5 * time.Minute)
	require.Empty(t, e.Snapshot().Resources)
	deliver(t, sink, `flow: [{name: named, resource: "rare:1", limit: 9}, {name: pattern, match: "rare:*", limit: 9}, {name: typo, resource: rare, limit: 9}]`)
	assert.Equal(t, map[string]string{"named": "call[]", "pattern": "call[]", "typo": "resource[]"}, missing(sink))
}

func TestRememberedNamesAreBounded(t *testing.T) {
	e, now, sink := followHeld(t)
	for i := range 3000 {
		enter(e, fmt.Sprint("old:", i), 1)
	}
	now.Advance(5 * time.Minute)
	require.Empty(t, e.Snapshot().Resources)
	deliver(t, sink, "flow: [{name: all, match: 'old:*', limit: 9}]")
	assert.Equal(t, map[string]string{"all": "call[]"}, missing(sink))
	require.Equal(t, 1024, e.CalledNames())
}

func TestStatusOfASourceNamesTheFirstHundredRules(t *testing.T) {
	_, _, sink := followHeld(t)
	text := "flow:\n"
	for i := range 250 {
		text += fmt.Sprintf("  - {resource: r%03d, limit: 1}\n", i)
	}
	deliver(t, sink, text)
	status := sink.Status()
	assert.Len(t, status.Unmatched, 100)
	assert.Equal(t, 150, status.MoreUnmatched)
	assert.Equal(t, "r099", status.Unmatched[99].Key.Name)
}

// Such rules read the attribute of few calls as long as no call has to wait.
func TestMisspelledFairByIsMissingWhileNobodyWaits(t *testing.T) {
	e, now, sink := followHeld(t)
	call := func(opts ...core.Option) {
		t.Helper()
		now.Advance(time.Second)
		guard, err := e.Entry(t.Context(), "a", opts...)
		require.NoError(t, err)
		guard.Exit()
	}
	call()
	deliver(t, sink, `
isolation:
  - {name: typo, resource: a, limit: 9, maxWait: 1s, fairBy: tenent, newcomers: equal}
  - {name: composite, resource: a, limit: 9, maxWait: 1s, fairBy: [tenant, user], newcomers: equal}
  - {name: right, match: "*", limit: 9, maxWait: 1s, fairBy: tenant, newcomers: equal}
adaptive:
  - {name: whole, inbound: true, strategy: latency}
`)
	assert.Equal(t, map[string]string{
		"typo": "call[tenent]", "composite": "call[tenant user]", "right": "call[tenant]", "whole": "call[origin]",
	}, missing(sink))

	call(core.Inbound())
	assert.Equal(t, map[string]string{
		"typo": "attribute[tenent]", "composite": "attribute[tenant user]", "right": "attribute[tenant]",
	}, missing(sink), "a call without them")
	call(core.String("tenant", "t"), core.Inbound())
	assert.Equal(t, map[string]string{"typo": "attribute[tenent]", "composite": "attribute[user]"}, missing(sink))
	user := "u"
	call(core.Attributes(func(user *string, key string) rule.Attribute {
		if key == "user" {
			return rule.String(*user)
		}
		return rule.Attribute{}
	}, &user))
	assert.Equal(t, map[string]string{"typo": "attribute[tenent]"}, missing(sink))

	read := 0
	count := core.Attributes(func(read *int, _ string) rule.Attribute {
		*read++
		return rule.Attribute{}
	}, &read)
	call(count)
	read = 0
	for range 10_000 { // within a second
		now.Advance(100 * time.Microsecond)
		guard, err := e.Entry(t.Context(), "a", count)
		require.NoError(t, err)
		guard.Exit()
	}
	assert.Equal(t, 100, read, "of the one attribute that no call had")
}
