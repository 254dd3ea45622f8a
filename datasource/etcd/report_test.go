package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
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
	for i := range 100 {
		long := strings.Repeat("\x03", 200)
		status.Unmatched = append(status.Unmatched, core.UnmatchedRule{
			Key: rule.Key{Kind: "flow", Name: fmt.Sprint(i, long)}, Target: rule.Target{Resource: long, Origin: long}, Attributes: []string{long},
		})
	}
	status.MoreUnmatched = 7
	report := Report{}.withStatus(status)
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
