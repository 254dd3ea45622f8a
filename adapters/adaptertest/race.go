//go:build race

package adaptertest

// RaceEnabled says whether the race detector runs.
const RaceEnabled = true
