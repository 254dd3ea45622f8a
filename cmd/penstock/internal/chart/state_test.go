package chart

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/simulate"
)

func TestLegendNamesTheStatesOfAnyKind(t *testing.T) {
	ready, missing := span{0, 5, "ready"}, span{5, 10, "listMissing"}
	p := panel{lanes: []lane{{rule: "a", kind: "access", first: "ready", spans: []span{ready, missing}}}}
	assert.Equal(t, []shown{{"ready", good}, {"listMissing", other}}, p.states())
	assert.NotEqual(t, p.stateMark(p.states()[0]), p.stateMark(p.states()[1]))

	p.lanes = append(p.lanes, lane{rule: "b", kind: "breaker", first: "closed", spans: []span{{0, 10, "open"}}})
	assert.Equal(t, []shown{{"closed", good}, {"halfOpen", between}, {"open", bad}, {"ready", good}, {"listMissing", other}}, p.states())
	seen := map[rune]bool{}
	for _, state := range p.states() {
		seen[p.stateMark(state)] = true
	}
	assert.Len(t, seen, 4, "each state has a mark of its own, but for those that are good")
}

func TestFirstStateOfAKindIsGoodWhateverItsName(t *testing.T) {
	l := lane{rule: "night", kind: "quietHours", first: "open", spans: []span{{0, 5, "open"}, {5, 10, "quiet"}}}
	p := panel{lanes: []lane{l}}
	assert.Equal(t, []shown{{"open", good}, {"quiet", other}}, p.states(), "and nothing of breakers")
	assert.Equal(t, '·', p.stateMark(l.show("open")))
	assert.Equal(t, good, l.class("open"))
	assert.Equal(t, []string{"quiet"}, statesIn([]simulate.StateChange{{From: "open", To: "quiet"}}, l))
}
