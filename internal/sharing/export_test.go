package sharing

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/packed"
)

// Leased returns the tokens that calls can take and that were leased: those on debt are not.
func (b *Budget) Leased() int64 {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	return packed.Tokens(b.packed.Load()).Tokens() - b.debt
}

// Arrive notes that the answer to the batch is there, as whoever sends it does before it is delivered.
func (b *Batch) Arrive() { b.arrived.Store(true) }

// BeginWake does the first step of Wake, and says whether the caller is to go on with EndWake.
func (p *Places) BeginWake() bool { return p.isWoken.CompareAndSwap(false, true) }

// EndWake does the second step of Wake.
func (p *Places) EndWake(now clock.Instant) { p.putIntoWoken(now) }
