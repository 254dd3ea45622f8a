package core_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

func BenchmarkLoad(b *testing.B) {
	const count = 10_000
	for name, every := range map[string]int{"10000 rules all changed": 1, "10000 rules one changed": count} {
		b.Run(name, func(b *testing.B) {
			var sets [2]rules.Set
			for i := range sets {
				for j := range count {
					limit := 1000.0
					if j%every == 0 {
						limit += float64(i)
					}
					sets[i].Flow = append(sets[i].Flow, flow.Rule{Resource: fmt.Sprint("resource", j), Limit: limit})
				}
			}
			e := core.New(core.Config{Logger: quiet})
			defer e.Close()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := e.Load(sets[i%2]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What one changed document costs should not depend on how many there are.
func BenchmarkApplyOneDocument(b *testing.B) {
	for _, count := range []int{1, 5000} {
		b.Run(fmt.Sprintf("of %d", count), func(b *testing.B) {
			source := newMemory("memory")
			e := core.New(core.Config{Logger: quiet})
			defer e.Close()
			require.NoError(b, e.Follow(b.Context(), source))
			change := core.Change{Complete: true}
			for i := range count {
				text := fmt.Sprintf("flow: [{resource: resource%d, limit: 1}]", i)
				change.Documents = append(change.Documents, doc(fmt.Sprint(i), 1, text))
			}
			source.put(change)
			b.ReportAllocs()
			for i := 2; b.Loop(); i++ {
				text := fmt.Sprintf("flow: [{resource: resource0, limit: %d}]", i)
				source.put(core.Change{Documents: []core.Document{doc("0", int64(i), text)}})
			}
		})
	}
}
