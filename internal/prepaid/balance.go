// Package prepaid keeps balances of tokens that are only recharged: calls take from them, and nothing
// flows back.
package prepaid

import (
	"fmt"
	"sync"

	"github.com/penstock-go/penstock/rule"
)

// Terms are what a version of a rule says of a balance.
type Terms struct {
	Version uint64 // of the rule; the higher one is newer
	Limit   int64  // tokens that the balance has at first
}

// Balance is the tokens that somebody has left. It may be used concurrently. It has a lock of its own,
// which is held for no longer than it takes to count: so it is exact, also while the rule changes.
type Balance struct {
	mu    sync.Mutex
	terms Terms
	left  int64 // below 0 if more was taken than there was
	gone  bool  // nobody finds it any more

	holder uint64 // for whom it counts, of several [Balances]; never changes
}

// New returns a balance that has what it has at first.
func New(t Terms) *Balance { return &Balance{terms: t, left: t.Limit} }

// adopt goes over to terms, unless those present are newer: of that it says false. When the limit
// changes, so does what is left, by the difference.
func (b *Balance) adopt(t Terms) bool {
	switch {
	case t.Version < b.terms.Version:
		return false
	case t.Version > b.terms.Version:
		b.left += t.Limit - b.terms.Limit
		b.terms = t
	}
	return true
}

// Adopt goes over to terms, unless those present are newer.
func (b *Balance) Adopt(t Terms) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.adopt(t)
}

// Take takes n tokens, or none if fewer are left. The decision is Pass or Block, or Stale if the terms
// are older than those present.
func (b *Balance) Take(t Terms, n int32) rule.Decision {
	decision, _ := b.take(t, n)
	return decision
}

func (b *Balance) take(t Terms, n int32) (decision rule.Decision, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.gone:
		return rule.Stale, true
	case !b.adopt(t):
		return rule.Stale, false
	case b.left < int64(n):
		return rule.Block, false
	}
	b.left -= int64(n)
	return rule.Pass, false
}

// Add adds tokens, or takes some off if the number is below 0, however few are left. It returns what is
// left. The error is that it would be more than [rule.MaxBalance]; nothing has changed then.
func (b *Balance) Add(t Terms, n int64) (left int64, err error) {
	left, _, err = b.add(t, n)
	return left, err
}

func (b *Balance) add(t Terms, n int64) (left int64, gone bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return 0, true, nil
	}
	b.adopt(t)
	if max(n, -n) > 2*rule.MaxBalance || max(b.left+n, -b.left-n) > rule.MaxBalance {
		return b.left, false, fmt.Errorf("%d tokens and %d more are beyond %d, which is the most that a balance can have",
			b.left, n, int64(rule.MaxBalance))
	}
	b.left += n
	return b.left, false, nil
}

// Correct takes n tokens more from the balance, however few are left, or gives some back if the number
// is below 0.
func (b *Balance) Correct(n int32) { b.correct(n) }

func (b *Balance) correct(n int32) (gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.gone {
		b.left = min(max(b.left-int64(n), -rule.MaxBalance), rule.MaxBalance)
	}
	return b.gone
}

// Left returns what is left by terms that are in force, or about to be.
func (b *Balance) Left(t Terms) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.Version > b.terms.Version {
		return b.left + t.Limit - b.terms.Limit
	}
	return b.left
}

// Inherit begins with what another balance has.
func (b *Balance) Inherit(from *Balance) {
	b.mu.Lock()
	t := b.terms
	b.mu.Unlock()
	left := from.Left(t)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = left
}

// drop says whether the balance is gone now, as it has what it had at first.
func (b *Balance) drop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = b.gone || b.left == b.terms.Limit
	return b.gone
}
