package main

import (
	"runtime"
	"time"
)

// heapSample is what was on the heap when all was at rest.
type heapSample struct {
	after time.Duration
	bytes uint64
}

func (s *soak) sampleHeap() {
	runtime.GC()
	runtime.GC() // what the first one finalised
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	s.heap = append(s.heap, heapSample{s.clock.Now().Sub(s.started), stats.HeapAlloc})
}

// settling is how long it takes until a resource has the statistics of a minute,
// and until those that nobody calls are forgotten.
const settling = 90 * time.Second

// judgeHeap compares what is on the heap now with what was there when all had
// settled, or in the first round of a short run. A resource may still have to gain
// the statistics of a minute.
func (s *soak) judgeHeap() {
	if len(s.heap) == 0 {
		return
	}
	first, last := s.heap[0], s.heap[len(s.heap)-1]
	for _, sample := range s.heap {
		if sample.after <= settling {
			first = sample
		}
	}
	const resource = 5 << 10 // bytes
	if allowed := first.bytes + first.bytes/10 + 2*resources*resource; last.bytes > allowed {
		s.wrong.add("the heap has grown from %s at %v to %s at %v", megabytes(first.bytes), first.after, megabytes(last.bytes), last.after)
	}
}
