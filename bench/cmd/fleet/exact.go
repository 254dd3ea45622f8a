package main

import (
	"math/rand/v2"

	"github.com/penstock-go/penstock/fleet"
)

// refusedByOne returns which share of the calls of a scenario a single counter would refuse,
// which every call asks and which is exact: with the mode lease a bucket that holds a tenth of a
// second, else a log of the last second. Calls come as independent ones do, so even below the
// limit there are now and then too many.
func (s *scenario) refusedByOne() float64 {
	const calls = 1_000_000
	random := rand.New(rand.NewPCG(s.Seed, 1))
	refuses := logOf(int(s.Limit))
	if s.Mode == fleet.ModeLease {
		refuses = bucketOf(s.Limit)
	}
	at, refused := 0.0, 0
	for range calls {
		at += random.ExpFloat64() / (s.Limit * s.Load)
		if refuses(at) {
			refused++
		}
	}
	return float64(refused) / calls
}

// bucketOf returns a token bucket, asked about calls at times in seconds.
func bucketOf(limit float64) func(at float64) (refused bool) {
	most := limit / 10
	tokens, last := most, 0.0
	return func(at float64) bool {
		tokens, last = min(most, tokens+(at-last)*limit), at
		if tokens < 1 {
			return true
		}
		tokens--
		return false
	}
}

// logOf returns the times of the latest calls that passed, asked about others.
func logOf(limit int) func(at float64) (refused bool) {
	passed, next := make([]float64, limit), 0
	for i := range passed {
		passed[i] = -1
	}
	return func(at float64) bool {
		if passed[next] > at-1 {
			return true
		}
		passed[next] = at
		next = (next + 1) % limit
		return false
	}
}
