package priority_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/rule"
)

func TestParseUnderstandsOnePriorityOnly(t *testing.T) {
	t.Parallel()
	for _, want := range rule.Priorities() {
		for _, text := range []string{want.String(), strings.ToUpper(want.String()), " " + want.String() + "\t"} {
			p, ok := priority.Parse([]string{text})
			assert.True(t, ok, text)
			assert.Equal(t, want, p, text)
		}
	}
	for _, values := range [][]string{
		nil,
		{""},
		{"2"},
		{"critical,low"},
		{"critical", "low"},
		{"critical", "critical"},
		{"crítical"},
		{"critical;q=1"},
		{strings.Repeat(" ", 1000) + "critical"},
	} {
		p, ok := priority.Parse(values)
		assert.False(t, ok, values)
		assert.Equal(t, rule.PriorityNormal, p)
	}
}
