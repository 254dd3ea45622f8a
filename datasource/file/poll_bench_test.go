package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// discardSink is a sink that ignores everything.
type discardSink struct{}

func (discardSink) Apply(core.Change)                           {}
func (discardSink) Disconnected(error)                          {}
func (discardSink) Status() core.SourceStatus                   { return core.SourceStatus{} }
func (discardSink) Document(string) (core.DocumentStatus, bool) { return core.DocumentStatus{}, false }

// BenchmarkIdlePoll measures a poll of documents that have not changed for a while.
// By default there are four polls a second.
func BenchmarkIdlePoll(b *testing.B) {
	for _, n := range []int{10, 500, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			for i := range n {
				require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte("flow: []\n"), 0o600))
			}
			time := clock.NewVirtual(time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC))
			source, err := newSource(dir, Options{Clock: time}, ruleDocuments())
			require.NoError(b, err)
			f := follower{source: source, sink: discardSink{}}
			poll := func() {
				time.Advance(source.opts.Interval)
				require.NoError(b, f.poll())
			}
			for range 20 {
				poll()
			}
			b.ReportAllocs()
			for b.Loop() {
				poll()
			}
		})
	}
}
