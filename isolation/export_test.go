package isolation

// Bounds that tests look at from outside.
const (
	MaxMaxQueue = maxMaxQueue
)
