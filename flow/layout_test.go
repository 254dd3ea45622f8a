package flow_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
)

// There may be ten thousand resources with a window each.
func TestAWindowTakesLittle(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words of 64 bits")
	}
	assert.EqualValues(t, 64, flow.SizeOfCompiled, "one line of the cache")
	assert.LessOrEqual(t, flow.SizeOfWindow, uintptr(240))
}
