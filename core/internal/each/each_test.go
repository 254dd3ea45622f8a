package each_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core/internal/each"
)

func TestOfReachesAllBehindOneThatPanics(t *testing.T) {
	var seen []int
	assert.PanicsWithValue(t, 2, func() {
		each.Of([]int{1, 2, 3}, func(i int) {
			seen = append(seen, i)
			if i == 2 {
				panic(i)
			}
		})
	})
	assert.ElementsMatch(t, []int{1, 2, 3}, seen)
}
