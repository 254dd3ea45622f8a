package bench_test

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// BenchmarkHotOneValue is calls that all have one value, which its limit lets pass.
func BenchmarkHotOneValue(b *testing.B) { measureValues(b, 1, peer.Huge, allPass) }

// BenchmarkHotOneValueBlocking is calls that all have one value, which has used its
// limit up.
func BenchmarkHotOneValueBlocking(b *testing.B) { measureValues(b, 1, 1, onePerHour) }

// BenchmarkHotTenThousandValues is calls with ten thousand values, all of which pass.
func BenchmarkHotTenThousandValues(b *testing.B) { measureValues(b, 10_000, peer.Huge, allPass) }

// BenchmarkHotMillionValues is calls with a million values, all of which pass.
func BenchmarkHotMillionValues(b *testing.B) { measureValues(b, 1_000_000, peer.Huge, allPass) }

// measureValues measures calls that have the values in random order, a million calls long.
// There are places for all of them and a quarter more, or as many as a rule has by default.
func measureValues(b *testing.B, count, limit int, expect expectation) {
	b.Helper()
	values := peer.NewValues(count)
	calls := values.AtRandom(1 << 20)
	window := time.Second
	if limit == 1 {
		window = time.Hour
	}
	of := peer.ValueLimit{Limit: limit, Window: window, Places: max(100_000, count*5/4)}
	limiters := peer.ValueLimiters()
	if limit == peer.Huge {
		limiters = append([]peer.ValueLimiter{peer.RateForAll()}, limiters...)
	}
	for _, l := range limiters {
		measure(b, l.Name, expect, func() (peer.Try, error) {
			try, err := l.New(of)
			if err != nil {
				return nil, err
			}
			for i := range count { // each is known when the measurement begins
				try(values.At(i))
			}
			for call := range warmUp {
				try(calls.At(call))
			}
			return func(call int) bool { return try(calls.At(call % calls.Len())) }, nil
		})
	}
}

// warmUp is how many calls come before the measurement: Penstock counts the first calls of each
// minute more closely than the others, to know the hottest values.
const warmUp = 1 << 18

// onePerHour is what remains of a limit that the preparation has used up.
func onePerHour(b *testing.B, passed int) {
	b.Helper()
	if passed > 0 {
		b.Fatalf("%d of %d calls passed, and none should", passed, b.N)
	}
}

// The scan: ten times more values than a library with a bound has places for, each five
// times in a row, under a limit of five in five minutes.
const (
	scanPlaces  = 20_000
	scanValues  = 10 * scanPlaces
	scanInARow  = 5
	scanAllowed = 5
	scanWindow  = 5 * time.Minute
)

// BenchmarkHotScan is a scan: someone tries one account after the other, over and over.
// Beside the time it reports the longest of a thousand calls and, since what the limit
// allows is known, how many times more than that has passed.
func BenchmarkHotScan(b *testing.B) {
	values := peer.NewValues(scanValues)
	for _, l := range peer.ValueLimiters() {
		b.Run(l.Name+"/serial", func(b *testing.B) {
			try := prepare(b, func() (peer.Try, error) {
				try, err := l.New(peer.ValueLimit{Limit: scanAllowed, Window: scanWindow, Places: scanPlaces})
				return func(call int) bool { return try(values.At(call / scanInARow % scanValues)) }, err
			})
			// Once through all values is set-up: each has used what it may.
			passed := 0
			for call := range scanValues * scanInARow {
				if try(call) {
					passed++
				}
			}
			begun := time.Now()
			took := make([]time.Duration, 0, 1<<20)
			call := 0
			for b.Loop() {
				start := time.Now()
				if try(call) {
					passed++
				}
				if len(took) < cap(took) {
					took = append(took, time.Since(start))
				}
				call++
			}
			b.StopTimer()
			slices.Sort(took)
			allowed := scanValues * scanAllowed * (1 + time.Since(begun).Seconds()/scanWindow.Seconds())
			b.ReportMetric(float64(took[len(took)*999/1000].Nanoseconds()), "p99.9-ns")
			b.ReportMetric(float64(passed)/allowed, "of-allowed")
		})
	}
}
