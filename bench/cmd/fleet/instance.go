package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

const roleInstance = "instance"

// task is what a process of the fleet does. It comes on its standard input.
type task struct {
	Scenario  scenario
	Instance  int
	Addresses []string // of the server, or of sentinels
	Sentinel  string   // the name by which sentinels know the server; "" without
}

// logger returns the logger of the engine.
func (t *task) logger() *slog.Logger {
	if !t.Scenario.Log {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With(slog.Int("instance", t.Instance))
}

// summary is the first line of what a process of the fleet reports; its calls follow.
type summary struct {
	Calls   int
	Outages int64 // that the instance has seen
	Lost    int64 // batches without an answer
}

// call is one call and how it ended.
type call struct {
	at     time.Duration // since the start: when it was known whether it passes
	took   time.Duration
	passed bool
}

// clockOfAll returns what the monotonic clock says that all processes of the machine have in
// common.
func clockOfAll() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("reading the monotonic clock: %w", err)
	}
	return time.Duration(ts.Nano()), nil
}

// instanceProcess is a process of the fleet. It gets its task, says "ready" when its engine
// has connected, gets the instant at which calls begin, and reports all calls at the end.
func instanceProcess(ctx context.Context, in io.Reader, out io.Writer) error {
	input := json.NewDecoder(in)
	var t task
	if err := input.Decode(&t); err != nil {
		return fmt.Errorf("reading the task: %w", err)
	}
	backend, err := redis.Connect(redis.Options{Addresses: t.Addresses, App: appName, SentinelMaster: t.Sentinel})
	if err != nil {
		return err
	}
	defer func() { _ = backend.Close() }()
	engine := core.New(core.Config{
		Fleet:  fleet.Config{Backend: backend, Instance: fmt.Sprint("instance-", t.Instance)},
		Logger: t.logger(),
	})
	defer engine.Close()
	if err := engine.Load(rules.Set{Flow: []flow.Rule{t.Scenario.rule()}}); err != nil {
		return err
	}
	if err := awaitBackend(ctx, engine); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	var start time.Duration
	if err := input.Decode(&start); err != nil {
		return fmt.Errorf("reading when to start: %w", err)
	}
	now, err := clockOfAll()
	if err != nil {
		return err
	}
	c := &caller{scenario: &t.Scenario, engine: engine, start: time.Now().Add(start - now)}
	c.makeCalls(t.Scenario.rate(t.Instance), rand.New(rand.NewPCG(t.Scenario.Seed, uint64(t.Instance)))) //nolint:gosec // guards no secret
	status := engine.Fleet().Status(engine.Clock().Now())
	return writeCalls(out, summary{Calls: len(c.calls), Outages: status.Outages, Lost: status.Lost}, c.calls)
}

// awaitBackend waits until the engine has had an answer from the backend: before that, the
// start of a process would be measured.
func awaitBackend(ctx context.Context, engine *core.Engine) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		status := engine.Fleet().Status(engine.Clock().Now())
		if status.Connected {
			return nil
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return errors.Join(errors.New("the backend does not answer"), status.Err)
		}
	}
}

// caller makes calls at random times.
type caller struct {
	scenario *scenario
	engine   *core.Engine
	start    time.Time

	mu    sync.Mutex
	calls []call
}

// tick is how often a caller wakes up at most: calls that come within it are made together, so
// that a processor is not busy with timers alone.
const tick = 500 * time.Microsecond

func (c *caller) makeCalls(rate float64, random *rand.Rand) {
	c.calls = make([]call, 0, int(1.2*rate*c.scenario.Duration.Seconds())+100)
	var waiting sync.WaitGroup
	for due := time.Duration(0); ; {
		due += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		if due >= c.scenario.Duration {
			break
		}
		if wait := due - time.Since(c.start); wait > 0 {
			time.Sleep(max(wait, tick))
		}
		if c.scenario.Mode == fleet.ModeAsk { // a call waits for the answer, others do not
			waiting.Go(c.call)
		} else {
			c.call()
		}
	}
	waiting.Wait()
}

func (c *caller) call() {
	before := time.Since(c.start)
	guard, err := c.engine.Entry(context.Background(), resource)
	at := time.Since(c.start)
	if err == nil {
		guard.Exit()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call{at: at, took: at - before, passed: err == nil})
}

// writeCalls writes a line of JSON, and 12 bytes for each call.
func writeCalls(out io.Writer, s summary, calls []call) error {
	w := bufio.NewWriterSize(out, 1<<16)
	if err := json.NewEncoder(w).Encode(s); err != nil {
		return err
	}
	var record [12]byte
	for _, c := range calls {
		at := uint64(c.at) << 1
		if c.passed {
			at |= 1
		}
		binary.LittleEndian.PutUint64(record[:8], at)
		binary.LittleEndian.PutUint32(record[8:], uint32(min(c.took, math.MaxUint32)))
		if _, err := w.Write(record[:]); err != nil {
			return err
		}
	}
	return w.Flush()
}

// readCalls reads what writeCalls has written.
func readCalls(r *bufio.Reader) (summary, []call, error) {
	var s summary
	line, err := r.ReadBytes('\n')
	if err != nil {
		return s, nil, fmt.Errorf("a process of the fleet reports nothing: %w", err)
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return s, nil, err
	}
	calls := make([]call, 0, s.Calls)
	var record [12]byte
	for range s.Calls {
		if _, err := io.ReadFull(r, record[:]); err != nil {
			return s, nil, fmt.Errorf("a report of a process of the fleet has no end: %w", err)
		}
		at := binary.LittleEndian.Uint64(record[:8])
		calls = append(calls, call{
			at: time.Duration(at >> 1), passed: at&1 == 1,
			took: time.Duration(binary.LittleEndian.Uint32(record[8:])),
		})
	}
	return s, calls, nil
}

// pause waits, or fails when the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
