package signal

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/signal/internal/cgroup"
	"github.com/penstock-go/penstock/signal/internal/host"
	"github.com/penstock-go/penstock/signal/internal/process"
)

// A Source reads signals. It is a core.SignalSource.
type Source interface {
	// Read returns what a signal shows, or why that is not known. It should end soon after
	// ctx.
	Read(ctx context.Context, signal rule.Signal) (float64, error)
}

// System returns a source of the signals that the package describes, for the process that
// calls it. It is safe for concurrent use, has no goroutine, and opens no file before it is
// read.
func System() Source {
	if runtime.GOOS != "linux" {
		return newSystem(nil, runtime.GOOS, clock.System())
	}
	return newSystem(os.DirFS("/"), runtime.GOOS, clock.System())
}

// system is what System returns.
type system struct {
	os    string
	clock clock.Clock

	mu      sync.Mutex // guards the readers
	host    *host.Reader
	group   *cgroup.Reader
	process *process.Reader
	heap    func() (process.Memory, error)
}

// newSystem returns a source that reads the files below root; nil if the system has no
// /proc.
func newSystem(root fs.FS, goos string, c clock.Clock) *system {
	golang := process.New(metrics.Read)
	s := &system{os: goos, clock: c, process: golang, heap: golang.Memory}
	if root != nil {
		s.host, s.group = host.New(root), cgroup.New(root)
	}
	return s
}

// Read returns what a signal shows. It ignores the context: it reads a few small files of the
// kernel.
func (s *system) Read(_ context.Context, signal rule.Signal) (float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, err := s.read(signal)
	if err != nil {
		return 0, fmt.Errorf("signal: %s: %w", signal, err)
	}
	return value, nil
}

func (s *system) read(signal rule.Signal) (float64, error) {
	now := s.clock.Now()
	switch signal {
	case rule.SignalMemory:
		return s.memory(now)
	case rule.SignalSchedulerDelay:
		return s.process.SchedulerDelay(now)
	case rule.SignalGC:
		return s.process.GC(now)
	case rule.SignalCPU, rule.SignalLoad, rule.SignalThrottled:
	default:
		return 0, fmt.Errorf("there is no such signal of the system; known are %s: give the engine a source that has it, such as a signal.Map", list(settings.KnownSignals()))
	}
	if s.host == nil {
		return 0, fmt.Errorf("it cannot be read on %s, only on Linux: leave it out of the rules, or give the engine a source that has it, such as a signal.Map", s.os)
	}
	switch signal {
	case rule.SignalLoad:
		return s.host.Load()
	case rule.SignalThrottled:
		group, err := s.group.CPU(now, 0)
		return group.Throttled, err
	}
	return s.cpu(now)
}

// cpu returns the share of the quota that is used, or of all processors if there is none of
// less than those.
func (s *system) cpu(now clock.Instant) (float64, error) {
	use, processors, err := s.host.CPU(now)
	if processors == 0 {
		processors = math.MaxInt // unknown: any quota counts
	}
	group, groupErr := s.group.CPU(now, processors)
	if groupErr != nil || group.Limited {
		return group.Used, groupErr
	}
	return use, err
}

// memory returns the share of the limit that is used, of that limit of which it is the
// greatest. The machine's memory is the limit only if there is no other.
func (s *system) memory(now clock.Instant) (float64, error) {
	memory, err := s.heap()
	if err != nil {
		return 0, err
	}
	if s.host == nil {
		if memory.Limit == math.MaxUint64 {
			return 0, fmt.Errorf("the process has no limit that can be read on %s: set GOMEMLIMIT", s.os)
		}
		return ratio(memory.Used, memory.Limit), nil
	}
	used, total, err := s.host.Memory()
	if err != nil {
		return 0, err
	}
	share, limited, err := s.group.Memory(now, total, func(limit uint64) uint64 {
		if memory.Limit <= limit {
			return memory.Garbage
		}
		return 0 // the runtime does not collect it in time for this limit
	})
	if err != nil {
		return 0, err
	}
	if memory.Limit < total {
		return max(share, ratio(memory.Used, memory.Limit)), nil
	}
	if limited {
		return share, nil
	}
	return ratio(used, total), nil
}

// ratio returns a/b, at most 1.
func ratio(a, b uint64) float64 { return min(float64(a)/float64(max(b, 1)), 1) }
