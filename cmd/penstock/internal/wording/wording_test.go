package wording_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

func TestPrintableRemovesControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[31m\nb\tc\u202ed 日本":         "a\ufffd[31m\ufffdb\tc\ufffdd 日本",
		"two\u2028lines\u2029and\u0085more": "two\ufffdlines\ufffdand\ufffdmore",
	} {
		assert.Equal(t, want, wording.Printable(text))
	}
}

func TestCellsHaveNoTabs(t *testing.T) {
	assert.Equal(t, "a b \ufffd", wording.Cell(" a\tb\n \x1b"))
}

func TestQuoteTruncatesLongTexts(t *testing.T) {
	assert.Equal(t, `"a\"b"`, wording.Quote(`a"b`))
	assert.Equal(t, `"`+strings.Repeat("日", 60)+`…"`, wording.Quote(strings.Repeat("日", 61)))
}

func TestCountUsesSingularAndPlural(t *testing.T) {
	assert.Equal(t, "0 rules, 1 rule, 2 rules",
		wording.Count(0, "rule")+", "+wording.Count(1, "rule")+", "+wording.Count(2, "rule"))
}

func TestListHasAtMostTenNames(t *testing.T) {
	assert.Equal(t, "a, b", wording.List([]string{"a", "b"}))
	assert.Equal(t, strings.Repeat("x, ", 9)+"x and 2 more", wording.List(strings.Split("xxxxxxxxxxxx", "")))
}
