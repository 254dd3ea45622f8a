package prepaid

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/rule"
)

// Bound counts the balances of several [Balances].
type Bound struct {
	// Held is told when there is one more that somebody holds, or one fewer; nil: nobody holds any.
	Held func(holder uint64, balances int64)

	count atomic.Int64
}

// Count returns how many there are.
func (b *Bound) Count() int64 { return b.count.Load() }

// reserve counts one more, if that makes no more than most.
func (b *Bound) reserve(most int, holder uint64) bool {
	if b.count.Add(1) > int64(most) {
		b.count.Add(-1)
		return false
	}
	b.held(holder, 1)
	return true
}

// free counts one fewer.
func (b *Bound) free(holder uint64) {
	b.count.Add(-1)
	b.held(holder, -1)
}

func (b *Bound) held(holder uint64, balances int64) {
	if holder != 0 {
		b.Held(holder, balances)
	}
}

const (
	shardBits = 6
	// SizeOfBalance is about how many bytes one takes in Balances.
	SizeOfBalance = 100
)

// Balances are those of many values, by a hash of each: there is one of each value whose balance is not
// as at first. They may be used concurrently. To find one takes a lock that only those who add a value
// hold alone.
type Balances struct {
	bound  *Bound
	shards [1 << shardBits]shard
}

type shard struct {
	mu     sync.RWMutex
	values map[uint64]*Balance
}

// NewBalances returns no balances; those that come count for the bound.
func NewBalances(bound *Bound) *Balances { return &Balances{bound: bound} }

func (b *Balances) shardOf(key uint64) *shard { return &b.shards[key>>(64-shardBits)] }

// find returns the balance of a value; nil if it is as at first.
func (b *Balances) find(key uint64) *Balance {
	s := b.shardOf(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.values[key]
}

// obtain returns the balance of a value, which it makes for a holder if there is none; nil if there are
// too many for the bound.
func (b *Balances) obtain(key uint64, t Terms, most int, holder uint64) *Balance {
	s := b.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.values[key]; found != nil {
		return found
	}
	if !b.bound.reserve(most, holder) {
		return nil
	}
	if s.values == nil {
		s.values = make(map[uint64]*Balance)
	}
	made := New(t)
	made.holder = holder
	s.values[key] = made
	return made
}

// Take takes tokens from the balance of a value, see [Balance.Take]. A call that is refused makes none.
// full says that it is refused because there are as many as there may be: Sweep may help. The holder has
// what is made until it is dropped; 0: nobody has.
func (b *Balances) Take(key uint64, t Terms, n int32, most int, holder uint64) (decision rule.Decision, full bool) {
	for {
		found := b.find(key)
		if found == nil {
			if t.Limit < int64(n) {
				return rule.Block, false
			}
			if found = b.obtain(key, t, most, holder); found == nil {
				return rule.Block, true
			}
		}
		if decision, gone := found.take(t, n); !gone {
			return decision, false
		}
	}
}

// Add adds tokens to the balance of a value, see [Balance.Add]. full says that it cannot because there
// are as many as there may be: Sweep may help.
func (b *Balances) Add(key uint64, t Terms, n int64, most int) (left int64, full bool, err error) {
	for {
		found := b.find(key)
		switch {
		case found != nil:
		case n == 0:
			return t.Limit, false, nil
		default:
			if found = b.obtain(key, t, most, 0); found == nil {
				return 0, true, nil
			}
		}
		if left, gone, err := found.add(t, n); !gone {
			return left, false, err
		}
	}
}

// Correct corrects what was taken from the balance of a value, see [Balance.Correct].
func (b *Balances) Correct(key uint64, t Terms, n int32) {
	for b.obtain(key, t, math.MaxInt, 0).correct(n) {
	}
}

// Left returns what is left of the balance of a value, see [Balance.Left].
func (b *Balances) Left(key uint64, t Terms) int64 {
	if found := b.find(key); found != nil {
		return found.Left(t)
	}
	return t.Limit
}

// Sweep drops the balances that are as at first, and says whether none is left.
func (b *Balances) Sweep() (empty bool) {
	empty = true
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		for key, balance := range s.values {
			if balance.drop() {
				delete(s.values, key)
				b.bound.free(balance.holder)
			}
		}
		empty = empty && len(s.values) == 0
		s.mu.Unlock()
	}
	return empty
}

// Close ends all balances.
func (b *Balances) Close() {
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		for _, balance := range s.values {
			b.bound.free(balance.holder)
		}
		s.values = nil
		s.mu.Unlock()
	}
}
