package rule_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/rule"
)

func TestAttributesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]rule.Attribute{
		"u1":                   rule.String("u1"),
		"":                     rule.String(""),
		"7":                    rule.Int(7),
		"-7":                   rule.Int(-7),
		"0":                    rule.Int(0),
		"-9223372036854775808": rule.Int(-1 << 63),
		"9223372036854775808":  rule.String("9223372036854775808"), // beyond int64
		"007":                  rule.String("007"),
		"+7":                   rule.String("+7"),
		"-0":                   rule.String("-0"),
		"7.0":                  rule.String("7.0"),
		"true":                 rule.Bool(true),
		"false":                rule.Bool(false),
		"True":                 rule.String("True"),
		`"7"`:                  rule.String("7"),
		`"true"`:               rule.String("true"),
		`"\"7\""`:              rule.String(`"7"`),
		`"`:                    rule.String(`"`),
		`"7`:                   rule.String(`"7`),
		`'7'`:                  rule.String(`'7'`),
	} {
		assert.Equal(t, want.GoString(), rule.ParseAttribute(text).GoString(), "%q", text)
	}
}
