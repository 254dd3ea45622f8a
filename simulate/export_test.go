package simulate

// Bounds that tests look at from outside.
const (
	MaxRate     = maxRate
	MaxSlowdown = maxSlowdown
	MaxWorkers  = maxWorkers
)
