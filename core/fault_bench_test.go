package core_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/rules"
)

// What a call costs, entry and exit, under a fault rule that is not for it.
func BenchmarkEntryWithFault(b *testing.B) {
	day := time.Now().Add(24 * time.Hour)
	for _, test := range []struct {
		name  string
		rules []fault.Rule
	}{
		{"none", nil},
		{"not chosen", []fault.Rule{{Resource: "r", Percent: 0.0001, Abort: fault.Abort{HTTP: 503}, Until: day}}},
		{"ended", []fault.Rule{{Resource: "r", Percent: 100, Abort: fault.Abort{HTTP: 503}, Until: time.Now()}}},
		{"refused", []fault.Rule{{Resource: "r", Percent: 100, Abort: fault.Abort{HTTP: 503}, Until: day}}},
	} {
		b.Run(test.name, func(b *testing.B) {
			e := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
			defer e.Close()
			if err := e.Load(rules.Set{Fault: test.rules}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				guard, _ := e.Entry(context.Background(), "r")
				guard.Exit()
			}
		})
	}
}
