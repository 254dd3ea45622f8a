//go:build unix

package console_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/console"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// BenchmarkOpenPages measures what fifty open pages cost a process with ten thousand resources, in hundredths
// of a core: the difference to the same process without them. Three rules guard each resource. The pages are open in
// a process of their own.
func BenchmarkOpenPages(b *testing.B) {
	const resources = 10_000
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), MaxResources: 2 * resources})
	defer engine.Close()
	set, err := rules.Parse("", []byte(`
flow: [{name: rate, match: "*", limit: 1000}]
isolation: [{name: pool, match: "*", limit: 100}]
breaker: [{name: errors, match: "*", threshold: 0.5}]
`))
	require.NoError(b, err)
	require.NoError(b, engine.Load(set))
	ctx, cancel := context.WithCancel(b.Context())
	var load sync.WaitGroup
	defer load.Wait()
	defer cancel()
	call := func(n int) {
		if guard, err := engine.Entry(ctx, "resource "+strconv.Itoa(n%resources)); err == nil {
			guard.Exit()
		}
	}
	for n := range resources {
		call(n)
	}
	load.Go(func() {
		for n := 0; ctx.Err() == nil; n += 10 {
			for i := range 10 {
				call(n + i)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	address := serve(b, console.Options{Engine: engine})
	const span = 5 * time.Second
	measure := func() float64 { // percent of a core
		before := usedTime(b)
		time.Sleep(span)
		return 100 * (usedTime(b) - before).Seconds() / span.Seconds()
	}
	idle, open := 0.0, 0.0
	for b.Loop() {
		idle += measure()
		pages := exec.CommandContext(ctx, os.Args[0])
		pages.Env = append(os.Environ(), fmt.Sprintf("%s=%s", pagesOf, address))
		require.NoError(b, pages.Start())
		time.Sleep(2 * time.Second) // they open
		open += measure()
		_ = pages.Process.Kill()
		_ = pages.Wait()
		time.Sleep(time.Second)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(idle/float64(b.N), "idle-%core")
	b.ReportMetric(open/float64(b.N), "open-%core")
}

// usedTime returns how much time of processors this process has used.
func usedTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
