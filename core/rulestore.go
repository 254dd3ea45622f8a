package core

import (
	"cmp"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ruleStore is the rules in force, and what the code and the sources hold.
type ruleStore struct {
	mu        sync.Mutex // guards every change of rules, also those of sources
	book      *ruleset.Book
	active    map[rule.Key]*activeRule // in force
	patterns  []*activeRule            // those that have one, by kind and name
	removed   removedRules
	forced    map[rule.Kind]*forcedState // on all rules of a kind
	revision  uint64
	appliedAt clock.Instant
	wasReady  bool // see Engine.AwaitedLists

	switches    *switchTable // the same that new names find in the patternSet
	timesForced bool         // a goroutine ends forced states whose time is over
}

func (s *ruleStore) init(config Config, try func([]rules.Replacement) error) {
	if len(config.Kinds) == 0 {
		try = nil
	}
	most := config.MaxRemoval
	if !(most > 0) {
		most = 1
	}
	s.book = ruleset.New(ruleset.Config{
		Table: rules.NewTable(config.Kinds...), MaxRemoval: most, RemovalWindow: max(0, cmp.Or(config.RemovalWindow, DefaultRemovalWindow)),
		Try: try,
	})
	s.active = make(map[rule.Key]*activeRule)
	s.forced = make(map[rule.Kind]*forcedState)
}
