package signal_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/signal"
)

// Two engines may share a source.
func TestSystemIsSafeForConcurrentUse(t *testing.T) {
	source := signal.System()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 50 {
				for _, s := range all() {
					value, _ := source.Read(context.Background(), s)
					assert.GreaterOrEqual(t, value, 0.0)
				}
			}
		})
	}
	readers.Wait()
}
