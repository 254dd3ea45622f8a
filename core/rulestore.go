package core

import (
	"cmp"
	"sync"
	"sync/atomic"

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

	forcings atomic.Uint64 // how often a state was forced or released; changed under mu
}

func (s *ruleStore) init(config Config) {
	most := config.MaxRemoval
	if !(most > 0) {
		most = 1
	}
	s.book = ruleset.New(ruleset.Config{
		Table: rules.NewTable(config.Kinds...), MaxRemoval: most, RemovalWindow: max(0, cmp.Or(config.RemovalWindow, DefaultRemovalWindow)),
	})
	s.active = make(map[rule.Key]*activeRule)
	s.forced = make(map[rule.Kind]*forcedState)
}
