package rule_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/rule"
)

// The compiler keeps a struct of up to four fields and four words in registers. Each
// question to a limiter is slower by some nanoseconds if a call is larger.
func TestCallStaysInRegisters(t *testing.T) {
	call := reflect.TypeFor[rule.Call]()
	assert.LessOrEqual(t, call.NumField(), 4)
	assert.LessOrEqual(t, call.Size(), 4*reflect.TypeFor[int64]().Size())
}

func TestCallHasANumberAPriorityAndADirection(t *testing.T) {
	var c rule.Call
	for _, number := range []uint32{1, 0, 1<<27 - 1, 12345} {
		for p := rule.PrioritySheddable; p <= rule.PriorityCritical; p++ {
			for _, inbound := range []bool{true, false} {
				assert.False(t, c.LongLived())
				c.SetNumber(math.MaxUint32)
				c.SetCaller(p, inbound)
				c.SetNumber(number)
				assert.Equal(t, p, c.Priority())
				assert.Equal(t, inbound, c.Inbound())
				assert.Equal(t, number, c.Number())
			}
		}
	}
}

func TestLongLivedCallKeepsItsMark(t *testing.T) {
	var c rule.Call
	c.SetLongLived()
	for p := rule.PrioritySheddable; p <= rule.PriorityCritical; p++ {
		c.SetCaller(p, p > 0)
		c.SetNumber(math.MaxUint32)
		assert.True(t, c.LongLived())
		assert.Equal(t, p, c.Priority())
		assert.Equal(t, p > 0, c.Inbound())
		assert.Equal(t, uint32(1<<27-1), c.Number())
	}
}

func TestPriorityOutOfRangeCountsAsTheNearest(t *testing.T) {
	for p, want := range map[rule.Priority]int{-128: 0, -3: 0, -2: 0, -1: 1, 0: 2, 1: 3, 2: 4, 3: 4, 4: 4, 127: 4} {
		assert.Equal(t, want, p.Level(), "priority %d", p)
		var c rule.Call
		c.SetCaller(p, true)
		assert.Equal(t, want, c.Priority().Level(), "priority %d of a call", p)
		assert.True(t, c.Inbound())
	}
}
