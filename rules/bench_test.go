package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

func BenchmarkParse10000Rules(b *testing.B) {
	var list strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&list, "{\"resource\": \"orders:%d\", \"limit\": 100, \"control\": \"throttle\", \"maxWait\": \"1s\"},\n", i)
	}
	rows := strings.TrimSuffix(list.String(), ",\n")
	for name, document := range map[string]string{
		"JSON": `{"flow": [` + rows + "]}",
		"YAML": "flow:\n- " + strings.ReplaceAll(rows, ",\n", "\n- "),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			b.ReportAllocs()
			for b.Loop() {
				set, err := rules.Parse("bench", []byte(document))
				require.NoError(b, err)
				require.Equal(b, 10_000, set.Len())
			}
		})
	}
}
