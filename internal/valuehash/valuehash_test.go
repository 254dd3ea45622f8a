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
	for _, seed := range []uint64{0, 1} {
		h, seen := valuehash.New(seed), map[uint64]rule.Attribute{}
		for _, value := range []rule.Attribute{
			{}, rule.String(""), rule.String("7"), rule.Int(7), rule.Int(1), rule.Bool(true), rule.Bool(false),
			both("a", "b/c"), both("a/b", "c"), both("", ""), rule.String("a name that is longer than a word"),
		} {
			hash := h.Hash(value)
			assert.NotContains(t, seen, hash, "%#v", value)
			seen[hash] = value
			assert.Equal(t, hash, h.Hash(value))
		}
	}
	assert.Equal(t, valuehash.New(7).Hash(rule.String("a")), valuehash.New(7).Hash(rule.String("a")), "of one seed")
	assert.NotEqual(t, valuehash.New(7).Hash(rule.String("a")), valuehash.New(8).Hash(rule.String("a")))
}
