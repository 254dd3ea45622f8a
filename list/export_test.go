package list

// Bounds that tests look at from outside.
const (
	MaxLine     = maxLine
	MaxMistakes = maxMistakes
	MaxName     = maxName
	MaxText     = maxText
)
