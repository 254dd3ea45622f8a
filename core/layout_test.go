package core

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// What every call writes is in one cache line, wherever the account of a resource
// lies: of another size, most accounts would begin in the middle of a line.
func TestAccountsBeginWithACacheLine(t *testing.T) {
	const line = 64
	e := New(Config{})
	for range 100 {
		a := e.resources.newResource("a", new(account)).account
		assert.Zero(t, uintptr(unsafe.Pointer(a))%line)
		first := uintptr(unsafe.Pointer(a))
		counter := uintptr(unsafe.Pointer(newTally(&a.node).refused))
		assert.Equal(t, first/line, counter/line, "a refusal is counted beside the blocked call")
	}
}
