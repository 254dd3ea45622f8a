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

// nobody is a sink that takes whatever is delivered.
type nobody struct{}

func (nobody) Apply(core.Change)                           {}
func (nobody) Disconnected(error)                          {}
func (nobody) Status() core.SourceStatus                   { return core.SourceStatus{} }
func (nobody) Document(string) (core.DocumentStatus, bool) { return core.DocumentStatus{}, false }

// BenchmarkIdleLook measures a look at documents of which none has changed for
// long. There are four in a second.
func BenchmarkIdleLook(b *testing.B) {
	for _, n := range []int{10, 500, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			for i := range n {
				require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte("flow: []\n"), 0o600))
			}
			time := clock.NewVirtual(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC))
			source, err := New(dir, Options{Clock: time})
			require.NoError(b, err)
			f := follower{source: source, sink: nobody{}}
			look := func() {
				time.Advance(source.opts.Interval)
				require.NoError(b, f.look())
			}
			for range 20 {
				look()
			}
			b.ReportAllocs()
			for b.Loop() {
				look()
			}
		})
	}
}
