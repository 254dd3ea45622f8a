package table

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlacesFitInto25Bits(t *testing.T) {
	g := newGeometry(740_000)
	require.LessOrEqual(t, g.slots(), uint64(1<<smallSlots-1))
	for _, slot := range []uint64{0, 1, g.slots() - 1} {
		p := g.place(slot, tagMask)
		assert.Less(t, p, Place(1<<25))
		assert.NotZero(t, p)
		assert.Equal(t, slot, g.slot(p))
	}
	assert.Less(t, sketchPlace(g.cells(key{1, 2, 3})), Place(1<<25))

	large := newGeometry(10_000_000)
	p := large.place(large.slots()-1, tagMask)
	assert.Equal(t, large.slots()-1, large.slot(p))
	assert.Less(t, p, Place(1<<48))
	assert.Less(t, sketchPlace(large.cells(key{1, 2, 3})), Place(1<<48))
}

// A place whose slot has been given to another value is nowhere.
func TestPlaceOfAForgottenValueIsNowhere(t *testing.T) {
	rates := mustCompile(1, TokenBucket, perSecond(1, 1))
	b := NewBuckets(16, rates)
	p, _ := b.Take(hashOf(0), rates.Class(0), start, 1)
	now := start
	for v := range uint64(1000) {
		now = now.Add(time.Second / 5)
		b.Take(hashOf(v+1), rates.Class(0), now, 1)
	}
	require.NotZero(t, b.Stats(now).Forgotten)
	words := make([]uint64, 0, b.slots())
	for slot := range b.slots() {
		words = append(words, b.word(slot).Load())
	}
	b.GiveBack(p, now, 1)
	b.Settle(p, now, 5)
	for slot := range b.slots() {
		assert.Equal(t, words[slot], b.word(slot).Load())
	}
}

func TestNothingAllocatesAfterMaking(t *testing.T) {
	rates := mustCompile(1, TokenBucket, perSecond(1, 1))
	b := NewBuckets(50, rates)
	throttles := mustCompile(1, Throttle, Limit{Limit: 1, Window: time.Second, MaxWait: time.Hour})
	turns := NewBuckets(50, throttles)
	terms := CompileWindow(1, time.Second)
	w := NewWindows(50, terms)
	c := NewConcurrency(50, 1)
	v, now := uint64(0), start
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		v++
		now += 1000_000
		hash := hashOf(v)
		p, _ := b.Take(hash, rates.Class(0), now, 1)
		b.GiveBack(p, now, 1)
		b.Settle(p, now, 1)
		b.RetryAfter(hash, rates.Class(0), now, 1)
		p, at, _ := turns.Reserve(hash, throttles.Class(0), now, 1)
		turns.Cancel(p, now, at, 1)
		p, _ = w.Take(hash, terms, 1, now, 1)
		w.Settle(p, now, 1)
		w.RetryAfter(hash, terms, 1, now, 1)
		c.Acquire(hash, 1, 1, NoSource)
		p, _ = c.Acquire(hash, 1, 2, NoSource)
		c.Release(p)
	}))
}

func TestTablesTakeFewBytesPerValue(t *testing.T) {
	for _, values := range []int{1000, 100_000, 1_000_000} {
		b := newBuckets(values)
		bytes := len(b.groups)*64 + len(b.headers)*8 + (len(b.cells.cells)+len(b.sources.cells))*8 + len(b.stripes)*int(unsafe.Sizeof(stripe{})) + len(b.blocks)*8
		assert.LessOrEqual(t, float64(bytes)/float64(values), 17.0, "%d values", values)
		c := newConcurrency(values)
		bytes = len(c.groups)*64 + len(c.cells)*8 + len(c.stripes)*int(unsafe.Sizeof(stripe{}))
		assert.LessOrEqual(t, float64(bytes)/float64(values), 17.0, "%d values", values)
		w := newWindows(values)
		bytes = len(w.words)*64 + len(w.counts)*40 + len(w.cells)*int(unsafe.Sizeof(windowCell{})) + len(w.sources.cells)*8 + len(w.stripes)*int(unsafe.Sizeof(windowStripe{}))
		assert.LessOrEqual(t, float64(bytes)/float64(values), 98.0, "%d values", values)
	}
	assert.Equal(t, uintptr(64), unsafe.Sizeof(stripe{}))
}

// Of a throttle only the last turn can be given to another call.
func TestCancelGivesTheLastTurnToAnotherCall(t *testing.T) {
	rates := mustCompile(1, Throttle, Limit{Limit: 10, Window: time.Second, MaxWait: time.Second})
	b, r := NewBuckets(100, rates), rates.Class(0)
	p1, first, _ := b.Reserve(hashOf(1), r, start, 1)
	p2, second, _ := b.Reserve(hashOf(1), r, start, 1)
	require.Equal(t, start.Add(100*time.Millisecond), second)
	b.Cancel(p1, start, first, 1) // the second keeps its distance from it
	_, third, _ := b.Reserve(hashOf(1), r, start, 1)
	require.Equal(t, start.Add(200*time.Millisecond), third)
	b.Cancel(p2, start, second, 1)
	p4, fourth, _ := b.Reserve(hashOf(1), r, start, 1)
	require.Equal(t, start.Add(300*time.Millisecond), fourth)
	b.Cancel(p4, start, fourth, 1)
	p5, fifth, _ := b.Reserve(hashOf(1), r, start, 1)
	require.Equal(t, fourth, fifth)

	later := fifth.Add(30 * time.Millisecond) // it has passed
	b.Cancel(p5, later, fifth, 1)
	_, sixth, _ := b.Reserve(hashOf(1), r, later, 1)
	require.Equal(t, later, sixth)
}

// A call comes late: the table has seen later instants. It is taken to come then.
func TestLateCallsGetNoMore(t *testing.T) {
	rates := mustCompile(1, TokenBucket, perSecond(1, 3))
	b, r := NewBuckets(100, rates), rates.Class(0)
	for range 3 {
		require.Equal(t, Taken, first(b.Take(hashOf(1), r, start, 1)))
	}
	later := start.Add(100 * time.Hour)
	for v := range uint64(100) {
		b.Take(hashOf(v+2), r, later, 3)
	}
	for v := range uint64(100) {
		require.Equal(t, Refused, first(b.Take(hashOf(v+2), r, start, 1)))
	}
	for range 3 { // full again by then
		require.Equal(t, Taken, first(b.Take(hashOf(1), r, start, 1)))
	}
	require.Equal(t, Refused, first(b.Take(hashOf(1), r, start, 1)))
}
