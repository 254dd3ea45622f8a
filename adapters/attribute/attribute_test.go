package attribute_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/rule"
)

func TestTextsStayDifferentAndBounded(t *testing.T) {
	whole := strings.Repeat("x", attribute.MaxLength)
	assert.Equal(t, rule.String("").GoString(), attribute.Text("").GoString())
	assert.Equal(t, rule.String(whole).GoString(), attribute.Text(whole).GoString())

	seen := map[string]bool{}
	for _, long := range []string{whole + "y", whole + "z", "y" + whole, whole + whole, strings.Repeat("x", 1<<20)} {
		text, _ := attribute.Text(long).Text()
		assert.Len(t, text, attribute.MaxLength+1+32)
		assert.True(t, strings.HasPrefix(text, long[:attribute.MaxLength]+"#"))
		assert.False(t, seen[text], "texts that differ stay different")
		seen[text] = true
		again, _ := attribute.Text(strings.Clone(long)).Text()
		assert.Equal(t, text, again)
	}
	page := strings.Repeat("x", 8<<10)
	assert.False(t, attribute.Text(page+"y").Equal(attribute.Text(page+"yz")))
	assert.True(t, attribute.Text(page+"y").Equal(attribute.Text(page+"z")), "beyond what is hashed")
}

func TestOnlyLongTextsAreCopied(t *testing.T) {
	short, long := strings.Repeat("x", attribute.MaxLength), strings.Repeat("x", 1<<16)
	assert.Zero(t, testing.AllocsPerRun(100, func() { attribute.Text(short) }))
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { attribute.Text(long) }), 1.0)
}
