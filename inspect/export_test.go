package inspect

// Bounds that tests look at from outside.
const (
	MaxAttributes    = maxAttributes
	MaxLimiters      = maxLimiters
	MaxResources     = maxResources
	MaxStreams       = maxStreams
	MaxValueLimiters = maxValueLimiters
)
