package main

import (
	"runtime"
	"time"

	"github.com/penstock-go/penstock/clock"

	"github.com/penstock-go/penstock/bench/internal/peer"
)

// heap is what is alive on the heap.
type heap struct{ bytes, objects float64 }

// measure returns by how much the heap grows when a new framework guards a number of
// resources and use has called them. Their names begin with the prefix and should be
// new: Sentinel keeps something for every name that it has ever seen.
func measure(framework peer.Framework, use use, prefix string, resources int) (heap, error) {
	time := clock.NewVirtual(time.Now())
	before := read()
	guards := framework.New(peer.Settings{Clock: time})
	if err := use(guards, time, peer.Names(prefix, resources)); err != nil {
		return heap{}, err
	}
	after := read()
	runtime.KeepAlive(guards)
	return heap{after.bytes - before.bytes, after.objects - before.objects}, peer.Reset()
}

// read collects garbage and returns what is left. It returns the least of several
// readings, so that what the frameworks' own goroutines are doing does not count.
func read() (least heap) {
	for i := range 5 {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		if i == 0 || float64(now.HeapAlloc) < least.bytes {
			least = heap{float64(now.HeapAlloc), float64(now.HeapObjects)}
		}
	}
	return least
}
