package recording

// Bounds that tests look at from outside.
const (
	MaxCalls = maxCalls
)
