package longtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/internal/longtest"
)

func TestAVariableAsksForAllThatTestsCanDo(t *testing.T) {
	for value, want := range map[string]int{"": 3, "1": 100} {
		t.Setenv("PENSTOCK_LONG", value)
		assert.Equal(t, want, longtest.Of(3, 100))
		t.Run("skips", func(t *testing.T) {
			defer func() { assert.Equal(t, value == "", t.Skipped()) }()
			longtest.Skip(t, "TestAVariableAsksForAllThatTestsCanDo")
		})
	}
}
