//go:build race

package penstockchi_test

// raceEnabled says whether the race detector, under which pools forget at random, is on.
const raceEnabled = true
