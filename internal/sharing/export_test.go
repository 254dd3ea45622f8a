package sharing

// Leased returns the tokens that calls can take and that were leased: those on debt are not.
func (b *Budget) Leased() int64 {
	b.member.mu.Lock()
	defer b.member.mu.Unlock()
	return packedTokens(b.packed.Load()).tokens() - b.debt
}

// Arrive notes that the answer to the batch is there, as whoever sends it does before it is delivered.
func (b *Batch) Arrive() { b.arrived.Store(true) }
