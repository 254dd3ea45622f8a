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
)

func TestReportShowsRulesInForceAndRejections(t *testing.T) {
	status := core.SourceStatus{Revision: 7, Documents: []core.DocumentStatus{
		{Name: "a", Rules: 2}, {Name: "b", Rules: 3, Rejected: errors.New("limit is negative"), RejectedRevision: 6}, {Name: "c"},
	}}
	want := Report{
		Instance: "i", Revision: 7, Rules: 5, Documents: 3,
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
			Name: fmt.Sprintf("%04d%s", i, strings.Repeat("\x01", 10_000)), Rejected: errors.New(strings.Repeat("\x02", 10_000)),
		})
	}
	report := Report{}.withStatus(status)
	assert.Len(t, report.Rejected, 100)
	assert.Equal(t, 4900, report.MoreRejected)
	value, err := json.Marshal(report)
	require.NoError(t, err)
	assert.Less(t, len(value), 3<<19, "what etcd takes in one request")
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
