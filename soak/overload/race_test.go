//go:build race

package main

// raceEnabled says whether the race detector, which is slow, is on.
const raceEnabled = true
