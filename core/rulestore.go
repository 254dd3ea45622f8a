package core

import (
	"cmp"
	"iter"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ruleStore is the rules in force, and what the code and the sources hold.
type ruleStore struct {
	mu        sync.Mutex      // guards every change of rules, also those of sources
	book      *ruleset.Book   // notes of each rule in force its inforce.Rule
	patterns  []*inforce.Rule // those that have one, by kind and name
	removed   inforce.Removed
	forced    map[rule.Kind]*inforce.ForcedState // on all rules of a kind
	revision  uint64
	appliedAt clock.Instant
	wasReady  bool // see Status.AwaitedLists

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
	s.forced = make(map[rule.Kind]*inforce.ForcedState)
}

// inForce returns the rule in force that has a key; nil if there is none. The caller holds s.mu.
func (s *ruleStore) inForce(key rule.Key) *inforce.Rule {
	a, _ := s.book.Note(key).(*inforce.Rule)
	return a
}

// all yields the rules in force, in no order. The caller holds s.mu.
func (s *ruleStore) all() iter.Seq2[rule.Key, *inforce.Rule] {
	return func(yield func(rule.Key, *inforce.Rule) bool) {
		for key, note := range s.book.Notes() {
			if !yield(key, note.(*inforce.Rule)) {
				return
			}
		}
	}
}
