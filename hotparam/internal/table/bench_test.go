package table

import (
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// hashes returns hashes of as many values, in an order that caches cannot guess.
func hashes(n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = hashOf(uint64(i))
	}
	return all
}

func BenchmarkBucketsHit(b *testing.B) {
	for _, live := range []int{10_000, 1_000_000} {
		b.Run(strconv.Itoa(live), func(b *testing.B) {
			rates := mustCompile(1, TokenBucket, perSecond(1000, 1000))
			table := NewBuckets(live, rates)
			all := hashes(live)
			now := start
			for _, h := range all {
				table.Take(h, rates.Class(0), now, 1)
			}
			b.ReportAllocs()
			next := uint64(1)
			for b.Loop() {
				next = next*6364136223846793005 + 1442695040888963407
				now += 100
				table.Take(all[(next>>32)%uint64(live)], rates.Class(0), now, 1)
			}
		})
	}
}

func BenchmarkBucketsRefused(b *testing.B) {
	rates := mustCompile(1, TokenBucket, Limit{Limit: 1, Window: time.Hour, Burst: 1})
	table := NewBuckets(10_000, rates)
	all := hashes(8192)
	for _, h := range all {
		table.Take(h, rates.Class(0), start, 1)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		table.Take(all[i%len(all)], rates.Class(0), start, 1)
	}
}

func BenchmarkBucketsNewValue(b *testing.B) {
	rates := mustCompile(1, TokenBucket, perSecond(1000, 1))
	table := NewBuckets(100_000, rates)
	b.ReportAllocs()
	n, now := uint64(0), start
	for b.Loop() {
		n++
		now += 100 // so many are as new again that each finds a slot
		table.Take(hashOf(n), rates.Class(0), now, 1)
	}
}

// BenchmarkBucketsOverCapacity cycles through three times more values than slots, all of
// which stay busy.
func BenchmarkBucketsOverCapacity(b *testing.B) {
	const values = 100_000
	rates := mustCompile(1, TokenBucket, Limit{Limit: 5, Window: 5 * time.Minute, Burst: 5})
	table := NewBuckets(values, rates)
	all := hashes(3 * values)
	for _, h := range all {
		table.Take(h, rates.Class(0), start, 5)
	}
	took, system := make([]time.Duration, 0, 1<<20), clock.System()
	b.ReportAllocs()
	i, now := 0, start
	for b.Loop() {
		i++
		now += 1000
		from := system.Now()
		table.Take(all[i%len(all)], rates.Class(0), now, 1)
		if len(took) < cap(took) {
			took = append(took, system.Now().Sub(from))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*999/1000]), "p99.9-ns")
}

func BenchmarkWindowsHit(b *testing.B) {
	terms := CompileWindow(1, time.Second)
	table := NewWindows(10_000, terms)
	all := hashes(8192)
	b.ReportAllocs()
	i, now := 0, start
	for b.Loop() {
		i++
		now += 100
		table.Take(all[i%len(all)], terms, 1_000_000, now, 1)
	}
}

func BenchmarkConcurrencyHit(b *testing.B) {
	table := NewConcurrency(10_000, 1)
	all := hashes(8192)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		p, _ := table.Acquire(all[i%len(all)], 1, 10, NoSource)
		table.Release(p)
	}
}

// BenchmarkArrayHit is a compare-and-swap in an array of as many words, and the array of
// hashes: what the machine takes for that.
func BenchmarkArrayHit(b *testing.B) {
	for _, live := range []int{10_000, 1_000_000} {
		b.Run(strconv.Itoa(live), func(b *testing.B) {
			words := make([]atomic.Uint64, live)
			all := hashes(live)
			next := uint64(1)
			for b.Loop() {
				next = next*6364136223846793005 + 1442695040888963407
				hash := all[(next>>32)%uint64(live)]
				word := &words[(hash>>32)*uint64(live)>>32]
				old := word.Load()
				word.CompareAndSwap(old, old+hash)
			}
		})
	}
}
