package table

// Immediate returns the rate for calls of the class that do not wait: with it,
// [Buckets.Take] lets a call pass that a throttle lets pass now, and [Buckets.RetryAfter]
// is the time until such a call passes. Of a token bucket it is the rate itself.
func (r *Rate) Immediate() *Rate {
	if r.span == 0 {
		return r
	}
	immediate := *r
	immediate.top = r.span + r.rounds
	return &immediate
}
