// Package parts does what there are many of in several goroutines.
package parts

import (
	"runtime"
	"sync"
)

const (
	// Max is the most parts that there are.
	Max = 4

	least = 256 // to begin a goroutine for less takes as long as it saves
)

// Of calls fn for each part of so many things, from one on and before another: for several at the same
// time if there are many things, and processors. fn must not panic: it runs no code of the program.
func Of(count int, fn func(part, from, to int)) {
	parts := max(1, min(Max, runtime.GOMAXPROCS(0), count/least))
	var others sync.WaitGroup
	for part := 1; part < parts; part++ {
		others.Go(func() { fn(part, part*count/parts, (part+1)*count/parts) })
	}
	fn(0, 0, count/parts)
	others.Wait()
}
