package splitmix_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/splitmix"
)

// The numbers are those of the reference implementation in C for the seed 1234567.
func TestSequenceIsThatOfSplitMix64(t *testing.T) {
	t.Parallel()
	place := uint64(1234567)
	for _, want := range []uint64{
		6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
	} {
		place += splitmix.Increment
		assert.Equal(t, want, splitmix.Mix(place))
	}
}
