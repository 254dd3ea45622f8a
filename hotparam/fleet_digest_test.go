package hotparam

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/rule"
)

func TestDigestOfAValueTakesNoAllocation(t *testing.T) {
	values := []rule.Attribute{
		rule.String("7c9e6679-7425-40de-944b-e07fc1f90ae7"), rule.Int(7), rule.Bool(true),
		rule.Composite(&[4]rule.Attribute{rule.String("acme"), rule.Int(7)}, 2),
	}
	for _, value := range values {
		assert.Zero(t, testing.AllocsPerRun(100, func() { digestOf("hotParam/per-user", value) }), "%#v", value)
	}
}

// Instances of different versions share limits: digests stay as they were.
func TestDigestsStayAsTheyAre(t *testing.T) {
	for text, value := range map[string]rule.Attribute{
		"k\x00t\x04\x00\x00\x00\x00\x00\x00\x00acme": rule.String("acme"),
		"k\x00n\xf9\xff\xff\xff\xff\xff\xff\xff":     rule.Int(-7),
		"k\x00b\x05\x00\x00\x00\x00\x00\x00\x00":     rule.Bool(false),
		"k\x00c\x02\x00\x00\x00\x00\x00\x00\x00t\x01\x00\x00\x00\x00\x00\x00\x00an\x07\x00\x00\x00\x00\x00\x00\x00": rule.Composite(
			&[4]rule.Attribute{rule.String("a"), rule.Int(7)}, 2),
		"k\x00t\x00\x04\x00\x00\x00\x00\x00\x00" + strings.Repeat("x", 1024): rule.String(strings.Repeat("x", 1024)),
	} {
		want := sha256.Sum256([]byte(text))
		assert.Equal(t, digest(want[:16]), digestOf("k", value), "%#v", value)
	}
}
