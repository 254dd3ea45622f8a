package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLegendNamesTheStatesOfAnyKind(t *testing.T) {
	ready, missing := span{0, 5, "ready"}, span{5, 10, "listMissing"}
	p := panel{lanes: []lane{{rule: "a", kind: "access", spans: []span{ready, missing}}}}
	assert.Equal(t, []string{"ready", "listMissing"}, p.states())
	assert.NotEqual(t, p.stateMark("ready"), p.stateMark("listMissing"))

	p.lanes = append(p.lanes, lane{rule: "b", kind: "breaker", spans: []span{{0, 10, "open"}}})
	assert.Equal(t, []string{"closed", "halfOpen", "open", "ready", "listMissing"}, p.states())
	seen := map[rune]bool{}
	for _, state := range p.states() {
		seen[p.stateMark(state)] = true
	}
	assert.Len(t, seen, 5, "each state has a mark of its own")
}
