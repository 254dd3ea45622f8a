package recording

// What tests look at from outside.
const (
	MaxCalls  = maxCalls
	FileMagic = magic
)

// FormatError says that a file is no recording, or is damaged.
type FormatError = formatError
