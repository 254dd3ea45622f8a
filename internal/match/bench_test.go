package match_test

import (
	"testing"

	"github.com/penstock-go/penstock/internal/match"
)

func BenchmarkMatches(b *testing.B) {
	for name, test := range map[string]struct{ pattern, name string }{
		"glob":                  {"orders:*", "orders:create"},
		"glob, other prefix":    {"orders:*", "payments:create"},
		"glob, other end":       {"*:create", "orders:delete"},
		"expression":            {"~^orders:.*$", "orders:create"},
		"expression, no match":  {"~^orders:.*$", "payments:create"},
		"classes and wildcards": {"v[0-9]/*/items/?*", "v1/users/items/12"},
	} {
		p, err := match.Compile(test.pattern)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Matches(test.name)
			}
		})
	}
}
