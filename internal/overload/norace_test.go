//go:build !race

package overload

// raceEnabled says whether the race detector, which is slow, is on.
const raceEnabled = false
