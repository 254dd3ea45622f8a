package valuehash_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/rule"
)

func TestValuesThatDifferHaveOtherHashes(t *testing.T) {
	t.Parallel()
	both := func(a, b string) rule.Attribute {
		return rule.Composite(&[rule.MaxKeys]rule.Attribute{rule.String(a), rule.String(b)}, 2)
	}
	values := []rule.Attribute{
		{},
		rule.String(""), rule.String("7"), rule.Int(7), rule.Int(1), rule.Bool(true), rule.Bool(false),
		both("a", "b/c"), both("a/b", "c"), both("", ""), rule.String("a name that is longer than a word"),
	}
	for _, seed := range []uint64{0, 1} {
		h, seen := valuehash.New(seed), map[uint64]rule.Attribute{}
		for _, value := range values {
			hash := h.Hash(value)
			assert.NotContains(t, seen, hash, "%#v", value)
			seen[hash] = value
			assert.Equal(t, hash, h.Hash(value))
		}
	}
	seven, again, eight := valuehash.New(7), valuehash.New(7), valuehash.New(8)
	assert.Equal(t, seven.Hash(rule.String("a")), again.Hash(rule.String("a")), "of one seed")
	assert.NotEqual(t, seven.Hash(rule.String("a")), eight.Hash(rule.String("a")))
}
