// Package host reads how busy a Linux machine is, from /proc.
package host

import (
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/signal/internal/procfs"
	"github.com/penstock-go/penstock/signal/internal/share"
)

// Reader reads the files below a root. It is not safe for concurrent use.
type Reader struct {
	root     fs.FS
	readings share.Readings
	last     map[int]ticks // by processor
	lastAt   clock.Instant // when some processor had counted since the reading before
	usable   int           // processors
	use      share.Mean
	err      error
}

// New returns a reader of the files below root, which is / in production.
func New(root fs.FS) *Reader { return &Reader{root: root} }

// CPU returns the share of time, 0 to 1, in which the processors that the process may run
// on were busy, and how many these are. It is the mean of the last second. Time that the
// hypervisor gave to others counts as busy, for the process cannot have it. The first call
// returns 0: it takes two to count.
func (r *Reader) CPU(now clock.Instant) (use float64, processors int, err error) {
	if r.readings.Due(now) {
		r.err = r.count(now)
	}
	return r.use.Value(), r.usable, r.err
}

// count reads what the processors have counted since the last time.
func (r *Reader) count(now clock.Instant) error {
	all, err := r.processors()
	if err != nil {
		return err
	}
	allowed, err := r.affinity()
	if err != nil {
		return err
	}
	present := usable(all, allowed)
	r.usable = len(present)
	var busy, total float64
	for number, t := range present {
		if before, ok := r.last[number]; ok {
			b, i := max(t.busy-before.busy, 0), max(t.idle-before.idle, 0)
			busy, total = busy+b, total+b+i
		}
	}
	if total == 0 && r.last != nil && sameProcessors(r.last, present) {
		if now.Sub(r.lastAt) > share.Window {
			return fmt.Errorf("read /proc/stat: its times of %d processors do not advance: this system does not count them", len(present))
		}
		return nil // less than a tick, so that the last reading stays the one to compare with
	}
	r.use.Add(r.lastAt, now, busy, total)
	r.last, r.lastAt = present, now
	return nil
}

func sameProcessors(a, b map[int]ticks) bool {
	for number := range a {
		if _, ok := b[number]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// Load returns the load average of the last minute, divided by the processors of the
// machine.
func (r *Reader) Load() (float64, error) {
	text, err := procfs.Read(r.root, "proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil || !(load >= 0) || math.IsInf(load, 0) {
		return 0, fmt.Errorf("read /proc/loadavg: %.40q is no load average", first)
	}
	all, err := r.processors()
	if err != nil {
		return 0, err
	}
	return load / float64(len(all)), nil
}

// Memory returns the bytes of memory that the machine has, and how many of them could not
// be freed for programs without swapping.
func (r *Reader) Memory() (used, total uint64, err error) {
	const name = "proc/meminfo"
	text, err := procfs.Read(r.root, name)
	if err != nil {
		return 0, 0, err
	}
	if total, err = procfs.Field(text, "MemTotal"); err != nil {
		return 0, 0, fmt.Errorf("read /%s: %w", name, err)
	}
	available, err := procfs.Field(text, "MemAvailable")
	if err != nil {
		return 0, 0, fmt.Errorf("read /%s: %w", name, err)
	}
	if total == 0 || total > math.MaxUint64/1024 {
		return 0, 0, fmt.Errorf("read /%s: MemTotal of %d kB cannot be", name, total)
	}
	return (total - min(available, total)) * 1024, total * 1024, nil
}
