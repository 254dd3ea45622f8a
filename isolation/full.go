package isolation

import "sync/atomic"

// full remembers which tenants are refused because the queue is full and they have as many calls
// waiting as any other: so a flood of their calls takes no lock. What it remembers is right until a call
// leaves the queue in another way than by making way for one of a tenant that has fewer: then it
// begins anew. It may forget tenants at any time.
//
// Whoever changes it holds the mutex of the pool.
type full struct {
	epoch atomic.Uint64 // from 1; how often it began anew
	last  atomic.Uint64 // the epoch of the latest refusal
	cells atomic.Pointer[[fullCells]atomic.Uint64]

	newcomers atomic.Uint64 // what a cell has while the calls of all unknown tenants are refused
}

const fullCells = 256

// cellOf returns the cell of a tenant, and what it has in it while its calls of a level are refused.
func cellOf(key uint64, level int, epoch uint64) (cell, mark uint64) {
	return key % fullCells, key ^ (epoch<<3|uint64(level))*0x9E3779B97F4A7C15
}

// refuse notes that a call of a tenant was refused.
func (f *full) refuse(key uint64, level int) {
	cells := f.cells.Load()
	if cells == nil {
		cells = new([fullCells]atomic.Uint64)
		f.cells.Store(cells)
		f.epoch.CompareAndSwap(0, 1)
	}
	epoch := f.epoch.Load()
	cell, mark := cellOf(key, level, epoch)
	cells[cell].Store(mark)
	f.last.Store(epoch)
}

// refuseNewcomers notes that calls of a level of all unknown tenants are refused, beside one that was.
func (f *full) refuseNewcomers(level int) {
	_, mark := cellOf(0, level, f.epoch.Load())
	f.newcomers.Store(mark)
}

// refusesNewcomers says whether a call of any unknown tenant is refused; false if that is not known.
func (f *full) refusesNewcomers(level int) bool {
	epoch := f.epoch.Load()
	_, mark := cellOf(0, level, epoch)
	return epoch != 0 && f.newcomers.Load() == mark
}

// reset forgets all refusals, which may be wrong now.
func (f *full) reset() {
	if epoch := f.epoch.Load(); epoch != 0 && f.last.Load() == epoch {
		f.epoch.Store(epoch + 1)
	}
}

// refusesAny says whether some tenant is refused. It may be called without the mutex, as refuses may.
func (f *full) refusesAny() bool {
	epoch := f.epoch.Load()
	return epoch != 0 && f.last.Load() == epoch
}

// refuses says whether a call of a tenant is refused at some instant while it is called; false if that
// is not known.
func (f *full) refuses(key uint64, level int) bool {
	epoch := f.epoch.Load()
	cells := f.cells.Load()
	if cells == nil {
		return false
	}
	cell, mark := cellOf(key, level, epoch)
	return cells[cell].Load() == mark
}
