// Package prefetch has the processor load memory before it is needed.
package prefetch

import "unsafe"

// Line begins to load the cache line in which a value begins, and does not wait for it: that is
// worth while for memory that is mostly in no near cache, if something else is to be done before it
// is needed. It is a call of 1 ns. On processors other than amd64 and arm64 it does nothing.
func Line[T any](value *T) { line(unsafe.Pointer(value)) }
