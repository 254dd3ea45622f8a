package core

import (
	"cmp"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ruleStore is the rules in force, and what the code and the sources hold.
type ruleStore struct {
	mu        sync.Mutex // guards every change of rules, also those of sources
	book      *ruleset.Book
	active    map[rule.Key]*inforce.Rule // in force
	patterns  []*inforce.Rule            // those that have one, by kind and name
	removed   inforce.Removed
	forced    map[rule.Kind]*inforce.ForcedState // on all rules of a kind
	revision  uint64
	appliedAt clock.Instant
	wasReady  bool // see Engine.AwaitedLists

	switches    *inforce.Switches // the same that new names find in the inforce.Patterns
	timesForced bool              // a goroutine ends forced states whose time is over
}

func (s *ruleStore) init(config Config, try func([]rules.Replacement) error) {
	most := config.MaxRemoval
	if !(most > 0) {
		most = 1
	}
	s.book = ruleset.New(ruleset.Config{
		Table: rules.NewTable(config.Kinds...), MaxRemoval: most, RemovalWindow: max(0, cmp.Or(config.RemovalWindow, defaultRemovalWindow)),
		Try: try,
	})
	s.active = make(map[rule.Key]*inforce.Rule)
	s.forced = make(map[rule.Kind]*inforce.ForcedState)
}
