package rule

// QuotaReader is a limiter that has a limit for each value of what its rule looks at.
type QuotaReader interface {
	Limiter

	// QuotaOf returns the state of the limit that such a call is held against; nil if none is,
	// or the state is not known. It may be slow, but must not change what later calls get.
	QuotaOf(Call) *Quota
}
