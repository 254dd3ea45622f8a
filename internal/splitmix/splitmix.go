// Package splitmix is the SplitMix64 generator of random numbers, by its parts: who counts in
// steps of [Increment], without a lock, has a place of its sequence for every count. It is
// not for secrets.
package splitmix

// Increment is the step from one place of the sequence to the next.
const Increment = 0x9E3779B97F4A7C15

// Mix returns the number at a place of the sequence: each of its bits depends on each bit of
// the place.
func Mix(place uint64) uint64 {
	z := (place ^ place>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
