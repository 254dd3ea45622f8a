package rule_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/rule"
)

// made is how an attribute was made.
type made struct {
	kind   string
	text   string
	number int64
	truth  bool
	parts  []made
}

// attribute makes the attribute. Texts are copied, so that two attributes with one text
// refer to different bytes.
func (m made) attribute() rule.Attribute {
	switch m.kind {
	case "text":
		return rule.String(strings.Clone(m.text))
	case "number":
		return rule.Int(m.number)
	case "boolean":
		return rule.Bool(m.truth)
	case "composite":
		parts := new([rule.MaxKeys]rule.Attribute)
		for i, part := range m.parts {
			parts[i] = part.attribute()
		}
		return rule.Composite(parts, len(m.parts))
	}
	return rule.Attribute{}
}

func drawMade(t *rapid.T, label string, kinds ...string) made {
	m := made{kind: rapid.SampledFrom(kinds).Draw(t, label)}
	switch m.kind {
	case "text":
		m.text = rapid.SampledFrom([]string{"", "0", "7", "true", "a", "ab", "a/b", strings.Repeat("x", 300)}).Draw(t, "text")
	case "number":
		m.number = rapid.SampledFrom([]int64{0, 1, 2, 7, -1, math.MaxInt64, math.MinInt64, math.MinInt64 + 2}).Draw(t, "number")
	case "boolean":
		m.truth = rapid.Bool().Draw(t, "truth")
	case "composite":
		for range rapid.IntRange(1, rule.MaxKeys).Draw(t, "parts") {
			m.parts = append(m.parts, drawMade(t, "part", "text", "number", "boolean"))
		}
	}
	return m
}

// check looks at everything that an attribute tells of itself.
func (m made) check(t *rapid.T, a rule.Attribute) {
	text, isText := a.Text()
	assert.Equal(t, m.kind == "text", isText)
	assert.Equal(t, m.text, text)
	number, isNumber := a.Number()
	assert.Equal(t, m.kind == "number", isNumber)
	assert.Equal(t, m.number, number)
	truth, isBoolean := a.Boolean()
	assert.Equal(t, m.kind == "boolean", isBoolean)
	assert.Equal(t, m.truth, truth)
	assert.Equal(t, m.kind != "nothing", a.IsSet())
	assert.Len(t, a.Parts(), len(m.parts))
	for i, part := range a.Parts() {
		m.parts[i].check(t, part)
	}
}

func TestAttributesAreWhatTheyWereMadeOf(t *testing.T) {
	t.Parallel()
	kinds := []string{"nothing", "text", "number", "boolean", "composite"}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawMade(t, "a", kinds...), drawMade(t, "b", kinds...)
		x, y := a.attribute(), b.attribute()
		a.check(t, x)
		b.check(t, y)
		isSame := fmt.Sprint(a) == fmt.Sprint(b)
		assert.Equal(t, isSame, x.Equal(y))
		assert.Equal(t, isSame, y.Equal(x))
		assert.Equal(t, isSame, x.GoString() == y.GoString())
		assert.True(t, x.Equal(a.attribute()))
	})
}

func TestAttributesReadAsCode(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]rule.Attribute{
		`rule.String("a\"b")`: rule.String(`a"b`),
		`rule.String("")`:     rule.String(""),
		"rule.Int(-7)":        rule.Int(-7),
		"rule.Bool(true)":     rule.Bool(true),
		"rule.Attribute{}":    {},
	} {
		assert.Equal(t, want, fmt.Sprintf("%#v", a))
	}
}
