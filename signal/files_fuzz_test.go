package signal

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
)

// signals are those that are read from files.
func signals() []rule.Signal {
	return []rule.Signal{rule.SignalCPU, rule.SignalThrottled, rule.SignalLoad, rule.SignalMemory}
}

// FuzzFiles replaces one file of a machine by any text. Each signal then is a number in its
// range, or an error.
func FuzzFiles(f *testing.F) {
	v2 := join(first(), container())
	v1 := join(first(), onV1("/shop", "/"), cpu1(v1CPU+"/shop", v1CPU+"/shop", "200000", 7, 1), memory1(v1Mem+"/shop", oneGiB, 900, 132))
	names := func(m *machine) (list []string) {
		for name := range m.fs {
			list = append(list, name)
		}
		slices.Sort(list)
		return list
	}
	for old, tree := range map[bool]files{false: v2, true: v1} {
		m := newMachine(f, tree)
		for i, name := range names(m) {
			f.Add(old, uint8(i), string(m.fs[name].Data))
			f.Add(old, uint8(i), "-1")
			f.Add(old, uint8(i), "99999999999999999999 99999999999999999999\n")
		}
	}
	f.Fuzz(func(t *testing.T, old bool, file uint8, text string) {
		m := newMachine(t, v2)
		if old {
			m = newMachine(t, v1)
		}
		list := names(m)
		name := list[int(file)%len(list)]
		for range 3 {
			for _, s := range signals() {
				value, err := m.source.Read(context.Background(), s)
				if err != nil {
					require.Zero(t, value)
					require.NotEmpty(t, err.Error())
					require.Less(t, len(err.Error()), 600+2*len(text), "an error is short")
					continue
				}
				require.False(t, math.IsNaN(value) || math.IsInf(value, 0) || value < 0, "%s is %v", s, value)
				require.True(t, s == rule.SignalLoad || value <= 1, "%s is %v", s, value)
			}
			m.clock.Advance(quarter)
			m.write(files{name: text})
		}
	})
}
