package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// recorder is a framework that only looks at the rules.
type recorder struct {
	peer.Guards
	prepared [][]peer.Rule
}

func (r *recorder) Prepare(set []peer.Rule) func() error {
	r.prepared = append(r.prepared, set)
	return nil
}

func TestTwoSetsDifferInAsManyRulesAsAreChanged(t *testing.T) {
	for _, changed := range []int{0, 1, 5} {
		var r recorder
		twoSets(&r, peer.Names("guarded", 5), changed)
		assert.Len(t, r.prepared, 2)
		for i := range 5 {
			a, b := r.prepared[0][i], r.prepared[1][i]
			assert.Equal(t, a.Resource, b.Resource)
			assert.Equal(t, i < changed, a.Limit != b.Limit, "rule %d of %d changed", i, changed)
		}
	}
}
