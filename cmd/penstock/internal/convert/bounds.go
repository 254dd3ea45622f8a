package convert

// What rules of Penstock have at the most, at least, or when they do not say.
const (
	maxPlaces      = 1_000_000  // of an isolation rule
	maxConcurrency = 1_000_000  // of a hotParam rule
	maxValues      = 10_000_000 // that a hotParam rule keeps
	usualValues    = 100_000    // that it has space for at least

	minRatio        = 0.001 // the threshold of a breaker
	breakerBuckets  = 10    // of its window
	usualColdFactor = 3.0   // of a flow rule that warms up
)
