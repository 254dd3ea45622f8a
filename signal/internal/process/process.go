// Package process reads how busy the Go runtime of the process is, from runtime/metrics.
package process

import (
	"fmt"
	"math"
	"runtime/metrics"

	"github.com/penstock-go/penstock/signal/internal/share"
)

// Reader reads the metrics. It is not safe for concurrent use.
type Reader struct {
	read func([]metrics.Sample)

	memory []metrics.Sample

	gcSamples []metrics.Sample
	gcDue     share.Readings
	gc        collections
	gcErr     error

	delaySamples []metrics.Sample
	delayDue     share.Readings
	counts       []uint64 // of delays, at the last reading
	delay        float64
	delayErr     error
}

// New returns a reader of the metrics that read fills in: metrics.Read in production.
func New(read func([]metrics.Sample)) *Reader {
	return &Reader{
		read: read,
		memory: samples("/gc/gomemlimit:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/released:bytes",
			"/memory/classes/heap/free:bytes", "/memory/classes/heap/objects:bytes", "/gc/heap/live:bytes"),
		gcSamples: samples("/cpu/classes/gc/total:cpu-seconds", "/cpu/classes/gc/mark/idle:cpu-seconds",
			"/cpu/classes/total:cpu-seconds", "/sched/gomaxprocs:threads"),
		delaySamples: samples("/sched/latencies:seconds"),
	}
}

func samples(names ...string) []metrics.Sample {
	list := make([]metrics.Sample, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	return list
}

// fill reads the samples, and checks that the runtime knows them all.
func (r *Reader) fill(samples []metrics.Sample) error {
	r.read(samples)
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindBad {
			return fmt.Errorf("the Go runtime has no metric %s", s.Name)
		}
	}
	return nil
}

// Memory is the memory of the Go runtime, in bytes.
type Memory struct {
	Limit   uint64 // GOMEMLIMIT; math.MaxUint64 without one
	Used    uint64 // what a garbage collection would leave, as far as the last one tells
	Garbage uint64 // what else it has from the system, which it frees before it reaches the limit
}

// Memory returns the memory of the runtime now.
func (r *Reader) Memory() (Memory, error) {
	if err := r.fill(r.memory); err != nil {
		return Memory{}, err
	}
	var n [6]uint64
	for i, s := range r.memory {
		n[i] = s.Value.Uint64()
	}
	return memoryOf(n[0], n[1], n[2], n[3], n[4], n[5]), nil
}

// memoryOf computes Memory from the limit, all address space of the runtime, what of it was
// given back to the system, what is free, what objects have, and what they had at the last
// collection.
func memoryOf(limit, total, released, free, objects, live uint64) Memory {
	if limit >= math.MaxInt64 {
		limit = math.MaxUint64
	}
	mapped := total - min(released, total)
	garbage := min(free+objects-min(live, objects), mapped)
	return Memory{Limit: limit, Used: mapped - garbage, Garbage: garbage}
}
