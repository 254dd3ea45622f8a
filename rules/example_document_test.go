package rules_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestExampleIsSoundAndShowsEveryFieldWithItsDefault(t *testing.T) {
	document, err := rules.NewTable().Example()
	require.NoError(t, err)
	set, err := rules.Parse("example", document)
	require.NoError(t, err)
	assert.Len(t, slices.Collect(set.Keys()), set.Len(), "rules of every kind count")

	// What the fields are, Parse tells when there is one that is none.
	_, err = rules.Parse("", []byte("flow: [{resource: a, limit: 1, warmUp: {period: 1s, unheard: 1}, unheard: 1}]"))
	lists := regexp.MustCompile("the fields here are (.*)").FindAllStringSubmatch(fmt.Sprint(err), -1)
	require.Len(t, lists, 2)
	for i, indent := range []string{"      ", "  [- ] "} {
		for field := range strings.SplitSeq(lists[i][1], ", ") {
			line := regexp.MustCompile(`(?m)^` + indent + field + `:.*$`).FindString(string(document))
			require.NotEmpty(t, line, field)
			if field != "warmUp" && field != "follow" && field != "fleet" {
				assert.Regexp(t, `[^ ] +# .+; (default: .+|required)$`, line)
			}
		}
	}
}

func TestExampleTellsTheDefaultsThatARuleGets(t *testing.T) {
	document, err := rules.NewTable().Example(rules.KindFlow)
	require.NoError(t, err)
	var left []string
	for line := range strings.Lines(string(document)) {
		if field := regexp.MustCompile(`: "?(\S+?)"? +# .*; default: (.*)\n`).FindStringSubmatch(line); field == nil || field[1] != field[2] {
			left = append(left, line)
		}
	}
	require.Less(t, len(left), strings.Count(string(document), "\n")-8)
	with, err := rules.Parse("", document)
	require.NoError(t, err)
	without, err := rules.Parse("", []byte(strings.Join(left, "")))
	require.NoError(t, err)
	assert.Equal(t, with.Flow, without.Flow)
}

func TestExampleOfAnUnknownKind(t *testing.T) {
	var kinds []rule.Kind
	for _, d := range rules.NewTable().Definitions() {
		kinds = append(kinds, d.Kind())
	}
	first := []rule.Kind{rules.KindFlow, rules.KindIsolation, rules.KindBreaker, rules.KindHotParam, rules.KindAccess, rules.KindAdaptive, rules.KindFault}
	require.Equal(t, first, kinds[:len(first)], "a new kind comes last")
	_, err := rules.NewTable().Example("floww")
	require.ErrorContains(t, err, `rules: there is no kind "floww" of rules: there are flow, isolation, breaker, `)
	for _, kind := range kinds {
		require.ErrorContains(t, err, string(kind))
	}
}
