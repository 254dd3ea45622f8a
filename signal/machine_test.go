package signal

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal/internal/process"
)

// files are the texts of files below /.
type files map[string]string

// machine is a machine of files, whose time stands still.
type machine struct {
	t          testing.TB
	fs         fstest.MapFS
	unreadable string // the file that may not be read
	clock      *clock.Virtual
	source     *system
}

const gib = 1 << 30

// newMachine returns a machine with four processors, the files of boot, and no limit
// of the Go runtime.
func newMachine(t testing.TB, all ...files) *machine {
	t.Helper()
	m := &machine{t: t, fs: fstest.MapFS{}, clock: clock.NewVirtual(time.Unix(1_800_000_000, 0))}
	m.source = newSystem(m, "linux", m.clock)
	m.limitGo(process.Memory{Limit: math.MaxUint64, Used: gib / 4})
	m.write(boot())
	for _, f := range all {
		m.write(f)
	}
	return m
}

// Open makes a machine an fs.FS.
func (m *machine) Open(name string) (fs.File, error) {
	if name == m.unreadable {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return m.fs.Open(name)
}

func (m *machine) write(f files) {
	for name, text := range f {
		m.fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
}

func (m *machine) remove(names ...string) {
	for _, name := range names {
		delete(m.fs, name)
	}
}

func (m *machine) limitGo(memory process.Memory) {
	m.source.heap = func() (process.Memory, error) { return memory, nil }
}

func (m *machine) read(s rule.Signal) float64 {
	m.t.Helper()
	value, err := m.source.Read(m.t.Context(), s)
	require.NoError(m.t, err)
	return value
}

// after lets time pass, has files written, and returns what a signal shows then.
func (m *machine) after(d time.Duration, f files, s rule.Signal) float64 {
	m.t.Helper()
	m.clock.Advance(d)
	m.write(f)
	return m.read(s)
}

// processor is what a processor has counted, in seconds.
type processor struct{ busy, idle float64 }

// stat is the text of /proc/stat.
func stat(processors ...processor) string {
	var b strings.Builder
	b.WriteString("cpu  1 2 3 4 5 6 7 8 9 10\n") // the sum, which nobody reads
	for i, p := range processors {
		b.WriteString(statLine(i, p))
	}
	return b.String() + "intr 46577070841692 0 9\nctxt 1234\nbtime 1763800000\nprocs_running 2\n"
}

// statLine spreads the times over the columns.
func statLine(number int, p processor) string {
	busy, idle := p.busy*1000, p.idle*1000 // of kernels with finer ticks
	return fmt.Sprintf("cpu%d %.0f %.0f %.0f %.0f %.0f 0 %.0f %.0f 77 0\n",
		number, busy*0.5, busy*0.1, busy*0.2, idle*0.9, idle*0.1, busy*0.1, busy*0.1)
}

// boot are the files of a machine without cgroups.
func boot() files {
	return files{
		"proc/stat":        stat(processor{}, processor{}, processor{}, processor{}),
		"proc/loadavg":     "2.00 1.10 1.37 1/97 30785\n",
		"proc/self/status": "Name:\tshop\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\nMems_allowed_list:\t0\n",
		"proc/meminfo":     "MemTotal:       16777216 kB\nMemFree:        20630732 kB\nMemAvailable:   12582912 kB\nBuffers:           35960 kB\n",
	}
}

// second is what boot has counted a second later: half of all, three quarters of the
// processors 2 and 3.
func second() files {
	light, heavy := processor{0.25, 0.75}, processor{0.75, 0.25}
	return files{"proc/stat": stat(processor{10, 90}.plus(light), processor{10, 90}.plus(light), processor{10, 90}.plus(heavy), processor{10, 90}.plus(heavy))}
}

// first is what boot has counted at the first reading.
func first() files {
	p := processor{10, 90}
	return files{"proc/stat": stat(p, p, p, p)}
}

func (p processor) plus(q processor) processor { return processor{p.busy + q.busy, p.idle + q.idle} }

// join returns all files of several maps.
func join(all ...files) files {
	joined := files{}
	for _, f := range all {
		maps.Copy(joined, f)
	}
	return joined
}
