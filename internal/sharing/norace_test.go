//go:build !race

package sharing_test

// raceEnabled says whether the race detector, which is slow, is on.
const raceEnabled = false
