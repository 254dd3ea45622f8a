package core

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/rule"
)

// What every call writes is in the first cache line of an account, with the refusals
// of the first rules. The runtime allots an account 448 bytes: a page has accounts one after the
// other, so each begins at a multiple of a line.
func TestWhatACallWritesIsInOneCacheLine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words of 64 bits")
	}
	const line = 64
	size := unsafe.Sizeof(registry.Stats{})
	require.True(t, 416 < size && size <= 448, "%d bytes are allotted another amount", size)
	assert.Zero(t, unsafe.Offsetof(registry.Stats{}.Node))
	for _, name := range []string{"passed", "done", "blocked", "blockedBy"} {
		field, found := reflect.TypeFor[leap.Node]().FieldByName(name)
		require.True(t, found, name)
		assert.LessOrEqual(t, field.Offset+field.Type.Size(), uintptr(line), name)
	}
}

// Callers write options for each call, so they are small. Option.call needs that the first
// word of an attribute is a pointer.
func TestOptionHasFourWordsOfWhichTheCallIsAPointer(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words of 64 bits")
	}
	assert.EqualValues(t, 32, unsafe.Sizeof(Option{}))
	attribute := reflect.TypeFor[rule.Attribute]()
	for i := range attribute.NumField() {
		if field := attribute.Field(i); field.Offset == 0 && field.Type.Size() > 0 {
			assert.Equal(t, reflect.UnsafePointer, field.Type.Kind())
		}
	}
	var read func(*int, string) rule.Attribute
	assert.EqualValues(t, 8, unsafe.Sizeof(read), "a function is a pointer")
}

// There may be ten thousand resources with a rule each: what one takes is of sizes that the runtime allots
// without waste. Another field of these takes as much again as it has, for every resource.
func TestWhatAResourceWithARuleTakesIsSmall(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("words of 64 bits")
	}
	for name, size := range map[string]struct{ is, most uintptr }{
		"a resource":                     {unsafe.Sizeof(resource{}), 112},
		"its plan, of one rule":          {unsafe.Sizeof(inforce.PlanOfOne{}), 352},
		"a rule in force":                {unsafe.Sizeof(inforce.Rule{}), 160},
		"what it keeps for the resource": {unsafe.Sizeof(inforce.State{}), 32},
		"and of calls that it refuses":   {unsafe.Sizeof(call.Refusals{}), 72},
		"and their number":               {unsafe.Sizeof(call.Tally{}), 56},
	} {
		assert.LessOrEqual(t, size.is, size.most, name)
	}
}

// An engine embeds what calls need of it: methods that others see of that would be methods of [Engine].
func TestEngineHasNoMethodsOfItsParts(t *testing.T) {
	assert.Zero(t, reflect.TypeFor[*callEnv]().NumMethod())
}
