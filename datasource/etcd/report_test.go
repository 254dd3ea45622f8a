package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

func TestReportShowsRulesInForceAndRejections(t *testing.T) {
	status := core.SourceStatus{Revision: 7, Documents: []core.DocumentStatus{
		{Name: "a", Rules: 2, Revision: 4},
		{Name: "b", Rules: 3, Revision: 5, Rejected: errors.New("limit is negative"), RejectedRevision: 6},
		{Name: "c", Revision: 3},
	}}
	held := []DocumentRevision{{"a", 4}, {"b", 6}, {"c", 3}}
	want := Report{
		Instance: "i", Revision: 7, Rules: 5, Documents: 3, Digest: DigestOf(held), Held: held,
		Rejected: []Rejection{{Document: "b", Revision: 6, Error: "limit is negative"}},
	}
	assert.Equal(t, want, Report{Instance: "i"}.withStatus(status))

	status.CopiedAt = 7
	want.CopiedAt = status.CopiedAt.Time()
	assert.Equal(t, want, Report{Instance: "i"}.withStatus(status))
}

func TestReportIsBounded(t *testing.T) {
	var status core.SourceStatus
	for i := range 5000 {
		status.Documents = append(status.Documents, core.DocumentStatus{
			Name:     fmt.Sprintf("%04d%s", i, strings.Repeat("\x01", 10_000*(i%2))),
			Rejected: errors.New(strings.Repeat("\x02", 10_000)), RejectedRevision: 7,
		})
	}
	for i := range 5000 {
		long := strings.Repeat("\x04", 100)
		status.Forced = append(status.Forced, core.Forced{Scope: core.Scope{Kind: "breaker", Rule: fmt.Sprint(i)}, State: "open", By: long, Reason: long})
		status.Switches = append(status.Switches, core.Forced{Scope: core.Scope{Resource: fmt.Sprint(i)}, State: core.SwitchOff})
	}
	registry := list.NewRegistry()
	for i := range 1000 {
		registry.Put(fmt.Sprintf("l%04d-%s", i, strings.Repeat("x", 90)), list.Provider{Source: "etcd:lists"}, list.Version{Digest: [32]byte{1}})
	}
	for i := range 100 {
		long := strings.Repeat("\x03", 200)
		status.Unmatched = append(status.Unmatched, core.UnmatchedRule{
			Key: rule.Key{Kind: "flow", Name: fmt.Sprint(i, long)}, Target: rule.Target{Resource: long, Origin: long}, Attributes: []string{long},
		})
	}
	status.MoreUnmatched = 7
	report := Report{}.withStatus(status).withLists(registry, "etcd:lists")
	assert.Equal(t, 10_000, len(report.Forced)+report.MoreForced)
	assert.Len(t, report.Forced, 100)
	assert.Len(t, report.Lists, 85, "with names of 8 KiB")
	assert.Equal(t, 107, len(report.Unmatched)+report.MoreUnmatched)
	assert.NotEmpty(t, report.Unmatched)
	assert.Len(t, report.Rejected, 100)
	assert.Equal(t, 4900, report.MoreRejected)
	value, err := json.Marshal(report)
	require.NoError(t, err)
	assert.Less(t, len(value), 3<<19, "what etcd takes in one request")
}

func TestDigestTellsDocumentsAndRevisionsApart(t *testing.T) {
	a, b := DocumentRevision{"a", 1}, DocumentRevision{"b", 2}
	assert.Equal(t, DigestOf([]DocumentRevision{a, b}), DigestOf([]DocumentRevision{b, a}), "in any order")
	seen := make(map[string][]DocumentRevision)
	for _, documents := range [][]DocumentRevision{
		nil, {a}, {b}, {a, b}, {{"a", 2}, {"b", 1}}, {{"ab", 1}}, {{"", 1}}, {{"a", 1}, {"b", 3}},
	} {
		digest := DigestOf(documents)
		assert.NotContains(t, seen, digest, "%v", documents)
		seen[digest] = documents
	}
}

func TestReportShowsWhatIsForcedAndSwitched(t *testing.T) {
	until := time.Date(2026, 11, 27, 3, 10, 0, 0, time.UTC)
	status := core.SourceStatus{
		Forced:   []core.Forced{{Scope: core.Scope{Kind: "breaker", Rule: "payments"}, State: "open", By: "bob", Reason: "deploy", Since: 7}},
		Switches: []core.Forced{{Scope: core.Scope{Resource: "orders"}, State: core.SwitchOff, By: "alice", Until: until}},
	}
	report := Report{}.withStatus(status)
	assert.Equal(t, []ForcedState{
		{Resource: "orders", State: core.SwitchOff, Switch: true, By: "alice", Until: until},
		{Kind: "breaker", Rule: "payments", State: "open", By: "bob", Reason: "deploy"},
	}, report.Forced)
	assert.Zero(t, report.MoreForced)
	assert.Equal(t, `breaker "payments"`, report.Forced[1].Scope())
}

func TestReportTellsWhichListsAnInstanceHas(t *testing.T) {
	registry := list.NewRegistry()
	ours := list.Provider{Source: "etcd:lists"}
	registry.Put("b", ours, list.Version{Digest: [32]byte{2}})
	registry.Put("a", ours, list.Version{Digest: [32]byte{1}})
	registry.Put("c", list.Provider{Source: "file:lists"}, list.Version{Digest: [32]byte{3}})
	report := Report{}.withLists(registry, ours.Source)
	a := ListVersion{"a", "01" + strings.Repeat("00", 31)}
	b := ListVersion{"b", "02" + strings.Repeat("00", 31)}
	assert.Equal(t, []ListVersion{a, b}, report.Lists)
	assert.True(t, report.HasLists([]ListVersion{b, a}))
	seen := map[string][]ListVersion{report.ListsDigest: {a, b}}
	for _, other := range [][]ListVersion{nil, {a}, {b}, {a, {"b", a.Digest}}, {a, {"b", ""}}, {{"ab", a.Digest}}, {{"a", ""}, {"b", b.Digest}}} {
		assert.False(t, report.HasLists(other))
		assert.NotContains(t, seen, ListsDigestOf(other))
		seen[ListsDigestOf(other)] = other
	}
	assert.True(t, Report{}.withLists(nil, "").HasLists([]ListVersion{a}), "it watches none")
	assert.False(t, Report{}.withLists(list.NewRegistry(), "").HasLists([]ListVersion{a}), "it has none")
}

func TestVersionsAreThoseOfTheBuild(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Path: "example.com/shop", Version: "v1.4.0"}}
	version, program := versionsIn(info)
	assert.Equal(t, []string{"", "example.com/shop v1.4.0"}, []string{version, program})
	info.Deps = []*debug.Module{{Path: "other", Version: "v9.0.0"}, {Path: modulePath, Version: "v0.3.0"}}
	version, _ = versionsIn(info)
	assert.Equal(t, "v0.3.0", version)
	info.Deps[1].Replace = &debug.Module{Path: "../penstock"}
	version, _ = versionsIn(info)
	assert.Equal(t, "v0.3.0", version)
	version, program = versionsIn(&debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "(devel)"}})
	assert.Equal(t, []string{"(devel)", modulePath + " (devel)"}, []string{version, program})
}

func TestRemovalThatIsHeldBackCountsAsRead(t *testing.T) {
	heldBack := core.SourceStatus{Documents: []core.DocumentStatus{
		{Name: "a", Rules: 2, Revision: 4}, {Name: "b", Rules: 3, Revision: 5, Rejected: &core.HeldBackError{}},
	}}
	assert.Equal(t, DigestOf([]DocumentRevision{{"a", 4}}), Report{}.withStatus(heldBack).Digest)
}

func TestLongTextsAreTruncatedBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"short":                    "short",
		"\xff":                     "\uFFFD",
		strings.Repeat("x", 1024):  strings.Repeat("x", 1024),
		strings.Repeat("x", 1025):  strings.Repeat("x", 1021) + "…",
		strings.Repeat("é", 513):   strings.Repeat("é", 510) + "…",
		strings.Repeat("\xff", 99): "\uFFFD",
	} {
		assert.Equal(t, want, truncate(text))
		assert.True(t, utf8.ValidString(truncate(text)))
	}
}

// oneHourLater is a clock whose wall clock was set, or a machine that was suspended.
type oneHourLater struct{ clock.Clock }

func (c oneHourLater) Until(t time.Time) time.Duration { return c.Clock.Until(t) - time.Hour }

// Others compare the times of reports with theirs.
func TestReportHasTheTimeOfTheWallClock(t *testing.T) {
	at := time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC)
	s := &Source{opts: Options{Clock: oneHourLater{clock.NewVirtual(at)}}}
	assert.Equal(t, at.Add(time.Hour), s.identity().Started)
	assert.Equal(t, at.Add(time.Hour), presentTime(s.opts.Clock))
}
