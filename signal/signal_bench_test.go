package signal

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// BenchmarkRead is what one reading of a signal takes, on this machine as it is, and from
// files of a container of Kubernetes that sees all cgroups above it.
func BenchmarkRead(b *testing.B) {
	const group = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-1.scope"
	nested := join(first(), membership("0::"+group+"\n", mountOfV2))
	quota, limit := "100000", oneGiB // of the container and the pod
	for level, folder := 0, v2Top+group; folder != v2Top; level, folder = level+1, filepath.Dir(folder) {
		if level == 2 {
			quota, limit = "max", "max"
		}
		nested = join(nested, cpu2(folder, quota, 7, 1), memory2(folder, limit, 512, 0))
	}
	root := b.TempDir()
	for name, text := range join(boot(), nested) {
		require.NoError(b, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(b, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	for name, dir := range map[string]string{"machine": "/", "kubernetes": root} {
		for _, s := range append(signals(), rule.SignalGC, rule.SignalSchedulerDelay) {
			b.Run(name+"/"+string(s), func(b *testing.B) {
				c := clock.NewVirtual(time.Unix(1_800_000_000, 0))
				source := newSystem(os.DirFS(dir), "linux", c)
				b.ReportAllocs()
				for b.Loop() {
					c.Advance(quarter) // or the reading before would be repeated
					_, _ = source.Read(context.Background(), s)
				}
			})
		}
	}
}
