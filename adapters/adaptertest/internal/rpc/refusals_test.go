package rpc_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// newCounted returns what keeps the names of rules that refused, and how often it has converted a refusal.
func newCounted() (*rpc.Refusals[string], *atomic.Int64) {
	converted := new(atomic.Int64)
	return rpc.NewRefusals(func(block *core.BlockError) string {
		converted.Add(1)
		return block.Rule
	}), converted
}

func TestRefusalIsConvertedOnce(t *testing.T) {
	kept, converted := newCounted()
	one, other := &core.BlockError{Rule: "one"}, &core.BlockError{Rule: "one"}
	for range 5 {
		assert.Equal(t, "one", kept.Of(one))
	}
	assert.EqualValues(t, 1, converted.Load())
	assert.Equal(t, "one", kept.Of(other))
	assert.EqualValues(t, 2, converted.Load(), "that of another call is not known")
	adaptertest.CheckAllocs(t, 0, func() { kept.Of(one) }, nil, "a refusal that is kept")
}

func TestRefusalOfALongNameIsNotKept(t *testing.T) {
	kept, converted := newCounted()
	long := &core.BlockError{Rule: "one", Resource: strings.Repeat("x", rule.MaxNameLength+1)}
	for range 3 {
		assert.Equal(t, "one", kept.Of(long))
	}
	assert.EqualValues(t, 3, converted.Load())
}

func TestOnlyAThousandRefusalsAreKept(t *testing.T) {
	const many = 20_000
	kept, converted := newCounted()
	all := make([]*core.BlockError, many)
	for i := range all {
		all[i] = &core.BlockError{RetryAfter: time.Duration(i)}
		kept.Of(all[i])
	}
	for _, block := range all {
		kept.Of(block)
	}
	assert.GreaterOrEqual(t, converted.Load(), int64(2*many-1024))
}

func TestRefusalsAreNotConfusedByManyGoroutines(t *testing.T) {
	kept, _ := newCounted()
	var blocks []*core.BlockError
	for i := range 3000 { // more than are kept
		blocks = append(blocks, &core.BlockError{Rule: strings.Repeat("r", i%7)})
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, block := range blocks {
				assert.Equal(t, block.Rule, kept.Of(block))
			}
		})
	}
	all.Wait()
}
