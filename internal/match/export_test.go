package match

// Bounds that tests look at from outside.
const (
	MaxLength = maxLength
)
