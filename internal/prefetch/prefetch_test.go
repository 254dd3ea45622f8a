package prefetch_test

import (
	"testing"

	"github.com/penstock-go/penstock/internal/prefetch"
)

func TestAnyAddressCanBePrefetched(t *testing.T) {
	words := make([]uint64, 1024)
	for i := range words {
		prefetch.Line(&words[i])
	}
	prefetch.Line[uint64](nil)
	for i, word := range words {
		if word != 0 {
			t.Errorf("word %d is %d, want 0", i, word)
		}
	}
}
