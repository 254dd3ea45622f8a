package fairqueue

import (
	"sync"
	"sync/atomic"
	"time"
)

// Known is which tenants are known: those that were served, or passed, when few unknown ones waited. It
// forgets one that nobody has asked for in ten minutes. It is a hash table of fixed size, which has four
// tenants a line, in lines that grow in number while tenants come: 64 KiB at most. A tenant for which
// there is no space takes that of the one that was asked for longest ago. Of 24 bits of the keys, one
// unknown tenant in a thousand is taken for a known one when the table is full.
//
// The zero value knows nobody. It is safe for concurrent use, and nobody waits for a lock.
type Known struct {
	table atomic.Pointer[knownTable]
	mu    sync.Mutex // held by who makes a table
}

// knownTable is lines of tenants: 24 bits of a hash and 8 of the period in which it was asked for last; 0
// if there is none.
type knownTable struct {
	cells []atomic.Uint32
	swept atomic.Int64 // the period in which those that are forgotten were removed last
}

const (
	knownLine   = 4
	leastKnown  = 1 << 8
	mostKnown   = 1 << 14
	knownPeriod = 10 * time.Second
	knownFor    = 60 // periods
	ageMask     = 1<<8 - 1

	// Tenants are removed before their periods, of which there are 8 bits, seem to be of late again.
	sweepEvery = 64
	sweepAll   = ageMask - sweepEvery
)

// Has says whether a tenant is known, and notes that it was asked for. The time is since any instant, always
// the same one.
func (k *Known) Has(tenant uint64, now time.Duration) bool {
	t := k.table.Load()
	if t == nil {
		return false
	}
	period := int64(now / knownPeriod)
	t.sweep(period)
	name := knownName(tenant)
	line := t.line(name)
	for i := range line {
		switch cell := line[i].Load(); {
		case cell>>8 != name:
		case !isLate(cell, period):
			if fresh := name<<8 | uint32(period&ageMask); fresh != cell {
				line[i].Store(fresh)
			}
			return true
		}
	}
	return false
}

// Add makes a tenant known, unless it is; then it returns false.
func (k *Known) Add(tenant uint64, now time.Duration) bool {
	if k.Has(tenant, now) {
		return false
	}
	period := int64(now / knownPeriod)
	t := k.table.Load()
	if t == nil {
		t = k.grow(nil, period)
	}
	name := knownName(tenant)
	line := t.line(name)
	place, isFree := t.placeIn(line, period)
	if !isFree && len(t.cells) < mostKnown {
		t = k.grow(t, period)
		line = t.line(name)
		place, _ = t.placeIn(line, period)
	}
	line[place].Store(name<<8 | uint32(period&ageMask))
	return true
}

// grow returns a table that is larger than one, unless that is another one by now.
func (k *Known) grow(from *knownTable, period int64) *knownTable {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.table.Load(); t != from {
		return t
	}
	size := leastKnown
	if from != nil {
		size = 4 * len(from.cells)
	}
	t := &knownTable{cells: make([]atomic.Uint32, size)}
	t.swept.Store(period)
	if from != nil {
		for i := range from.cells {
			if cell := from.cells[i].Load(); cell != 0 && !isLate(cell, period) {
				line := t.line(cell >> 8)
				place, _ := t.placeIn(line, period)
				line[place].Store(cell)
			}
		}
	}
	k.table.Store(t)
	return t
}

// knownName returns the 24 bits by which a tenant is known, of which none is 0.
func knownName(tenant uint64) uint32 { return max(uint32(tenant>>40), 1) }

func isLate(cell uint32, period int64) bool { return age(cell, period) > knownFor }

// age returns how many periods ago a tenant was asked for.
func age(cell uint32, period int64) int64 { return (period - int64(cell)) & ageMask }

func (t *knownTable) line(name uint32) []atomic.Uint32 {
	i := int(name) * knownLine & (len(t.cells) - 1)
	return t.cells[i : i+knownLine]
}

// placeIn returns the cell of a line for another tenant, and whether that is free.
func (t *knownTable) placeIn(line []atomic.Uint32, period int64) (place int, isFree bool) {
	oldest := int64(-1)
	for i := range line {
		cell := line[i].Load()
		if cell == 0 || isLate(cell, period) {
			return i, true
		}
		if a := age(cell, period); a > oldest {
			place, oldest = i, a
		}
	}
	return place, false
}

// sweep removes tenants that are forgotten, now and then.
func (t *knownTable) sweep(period int64) {
	swept := t.swept.Load()
	if period-swept < sweepEvery || !t.swept.CompareAndSwap(swept, period) {
		return
	}
	for i := range t.cells {
		if cell := t.cells[i].Load(); period-swept > sweepAll || isLate(cell, period) {
			t.cells[i].CompareAndSwap(cell, 0)
		}
	}
}
