package server

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGarbageIsBoundedUnlessTheEnvironmentSaysHowTheCollectorWorks(t *testing.T) {
	before := debug.SetGCPercent(usualGarbagePart)
	defer debug.SetGCPercent(before)
	for name, want := range map[string]int{"GOGC": usualGarbagePart, "GOMEMLIMIT": usualGarbagePart, "HOME": garbagePart} {
		end := boundGarbage(func(of string) string {
			if of == name {
				return "100"
			}
			return ""
		})
		got := debug.SetGCPercent(usualGarbagePart)
		debug.SetGCPercent(got)
		assert.Equal(t, want, got, name)
		end()
		assert.Equal(t, usualGarbagePart, debug.SetGCPercent(usualGarbagePart), name)
	}
}
