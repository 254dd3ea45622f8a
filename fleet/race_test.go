//go:build race

package fleet_test

// raceEnabled says whether the race detector, which is slow, is on.
const raceEnabled = true
