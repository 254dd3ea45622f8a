package core

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What every call writes is in the first cache line of an account, with the counters
// of the first rules. The runtime allots an account 512 bytes, a power of two, which it
// has no reason to lay anywhere but at a multiple of a line.
func TestWhatACallWritesIsInOneCacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words of 64 bits")
	}
	const line = 64
	size := unsafe.Sizeof(resourceStats{})
	require.True(t, 480 < size && size <= 512, "%d bytes are allotted another amount", size)
	a := new(resourceStats)
	for range 4 {
		counter := uintptr(unsafe.Pointer(newTally(&a.node).refused)) - uintptr(unsafe.Pointer(a))
		assert.Less(t, counter, uintptr(line), "a refusal is counted beside the blocked call")
	}
}
