//go:build !race

package core_test

// raceEnabled says whether the race detector, which allocates, is on.
const raceEnabled = false
