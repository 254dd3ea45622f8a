package fault

// Bounds that tests look at from outside.
const (
	MaxDelayed = maxDelayed
)
