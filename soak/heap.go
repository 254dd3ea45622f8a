package main

import (
	"runtime"
	"time"
)

// heapSample is the size of the heap while no calls are made.
type heapSample struct {
	after time.Duration
	bytes uint64
}

func (s *soak) sampleHeap() {
	runtime.GC()
	runtime.GC() // frees what the first one finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	s.heap = append(s.heap, heapSample{s.clock.Now().Sub(s.started), stats.HeapAlloc})
}

// settleTime is how long it takes until a resource has the statistics of a minute, and
// until idle resources are evicted.
const settleTime = 90 * time.Second

// checkHeap checks that the heap has not grown since settleTime, or since the
// first round of a short run. It allows for the statistics of a minute per resource.
func (s *soak) checkHeap() {
	if len(s.heap) == 0 {
		return
	}
	first, last := s.heap[0], s.heap[len(s.heap)-1]
	for _, sample := range s.heap {
		if sample.after <= settleTime {
			first = sample
		}
	}
	const resource = 5 << 10 // bytes
	if allowed := first.bytes + first.bytes/10 + 2*resources*resource; last.bytes > allowed {
		s.findings.add("the heap has grown from %s at %v to %s at %v", megabytes(first.bytes), first.after, megabytes(last.bytes), last.after)
	}
}
