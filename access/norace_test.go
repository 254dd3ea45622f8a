//go:build !race

package access_test

// raceEnabled says whether the race detector is on.
const raceEnabled = false
