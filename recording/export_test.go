package recording

// What tests look at from outside.
const (
	MaxCalls  = maxCalls
	FileMagic = magic
)
