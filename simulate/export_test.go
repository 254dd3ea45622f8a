package simulate

// Bounds that tests look at from outside.
const (
	MaxRate     = maxRate
	MaxSlowdown = maxSlowdown
	MaxWorkers  = maxWorkers
)

// ReplayedCall is what became of a call in a replay.
type ReplayedCall = replayedCall

// Each returns the options with a function that is called for each call.
func (o ReplayOptions) Each(call func(index int, replayed ReplayedCall)) ReplayOptions {
	o.onCall = call
	return o
}
