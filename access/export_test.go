package access

// Bounds that tests look at from outside.
const (
	MaxEntries = maxEntries
)
