package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNothingIsSetAsideIfTheEnvironmentSaysHowTheCollectorWorks(t *testing.T) {
	for name, want := range map[string]int{"GOGC": 0, "GOMEMLIMIT": 0, "HOME": unusedHeap} {
		assert.Len(t, setAside(func(of string) string {
			if of == name {
				return "100"
			}
			return ""
		}), want, name)
	}
}
