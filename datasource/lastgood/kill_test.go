package lastgood_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
	"github.com/penstock-go/penstock/internal/longtest"
)

// saveForever is the environment variable that turns this test into a process that
// only saves copies. Its value is "number path" of the first one.
const saveForever = "PENSTOCK_TEST_SAVE_FOREVER"

// numbered returns a document that is long enough for its save to be interrupted.
func numbered(name string, n int) core.Document {
	padding := strings.Repeat("# padding\n", 20_000)
	return core.Document{Name: name, Data: fmt.Appendf(nil, "flow: [{resource: %s, limit: %d}]\n%s", name, n, padding)}
}

// saveUntilKilled saves copies with ascending numbers in both of their documents. It
// prints each number before its save begins and after it has ended.
func saveUntilKilled(order string) {
	var n int
	var path string
	if _, err := fmt.Sscan(order, &n, &path); err != nil {
		panic(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	for ; ; n++ {
		source, applied := newScript(), make(chan struct{})
		kept, err := lastgood.Keep(source, lastgood.Options{Path: path, App: "shop", Logger: quiet})
		if err != nil {
			panic(err)
		}
		engine := core.New(core.Config{Logger: quiet})
		if err := engine.Follow(context.Background(), kept); err != nil {
			panic(err)
		}
		source.steps <- func(sink core.Sink) {
			sink.Apply(all(int64(n), numbered("a", n), numbered("b", n)))
			close(applied)
		}
		<-applied
		fmt.Println("begin", n)
		engine.Close() // saves
		fmt.Println("end", n)
	}
}

// A process that is killed at any time leaves the old copy or the new one, complete.
// The next process removes its temporary files.
func TestCopyIsCompleteWhenTheProcessIsKilled(t *testing.T) {
	path := copyPath(t)
	before, old, fresh, unfinished := 0, 0, 0, 0
	for range longtest.Of(longtest.Short(20, 10), 100) {
		ended, begun := killWhileSaving(t, path, before)
		now := numberInCopy(t, path)
		require.Contains(t, []int{ended, begun}, now, "neither the old copy nor the new one")
		if now == begun {
			fresh++
		} else {
			old++
		}
		before = now
		leftovers, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.unfinished"))
		require.NoError(t, err)
		require.LessOrEqual(t, len(leftovers), 1, "the next process removes what the one before left")
		unfinished += len(leftovers)
	}
	t.Logf("old %d, new %d; killed while writing %d", old, fresh, unfinished)
}

// killWhileSaving runs and kills a process that saves, from the number after
// before. It returns the number of the last save that ended and that of the last
// one that began.
func killWhileSaving(t *testing.T, path string, before int) (ended, begun int) {
	t.Helper()
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", saveForever, before+1, path))
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	ended, begun = before, before
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var word string
		var n int
		_, err := fmt.Sscan(lines.Text(), &word, &n)
		require.NoError(t, err, lines.Text())
		if word == "end" {
			ended = n
			continue
		}
		if begun == before {
			time.AfterFunc(rand.N(20*time.Millisecond), func() { _ = process.Process.Kill() })
		}
		begun = n
	}
	require.ErrorContains(t, process.Wait(), "killed")
	return ended, begun
}

// numberInCopy returns the number that both documents of the copy have; 0 without a
// copy.
func numberInCopy(t *testing.T, path string) int {
	t.Helper()
	c, err := lastgood.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	require.Len(t, c.Documents, 2)
	require.Positive(t, c.Revision)
	n := int(c.Revision)
	require.Equal(t, []core.Document{numbered("a", n), numbered("b", n)}, c.Documents)
	return n
}
