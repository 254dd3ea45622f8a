package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis"
	"github.com/penstock-go/penstock/rules"
)

// roleInstance is the first argument of a process that is an instance of the service. The
// others are its name and the address of the server.
const roleInstance = "instance"

// Messages of an instance, one a line: a word and what belongs to it.
const (
	sayReady   = "ready"   // it knows the fleet
	sayPassed  = "passed"  // a call has passed: when, in microseconds since 1970
	sayRefused = "refused" // a call was refused: when
	sayLogged  = "logged"  // a line of its log
	sayStatus  = "status"  // the answer to askStatus
)

// Messages to an instance. It ends when there are no more.
const (
	askBegin  = "begin"  // has calls come: from when on, in microseconds since 1970
	askStatus = "status" // wants to know how the limit is
)

// serveInstance is an instance of the service: an engine that shares its limit, and calls.
func serveInstance(in io.Reader, out io.Writer, name, address string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	say := speaker(out)
	engine, closeEngine, err := newEngine(name, address, say)
	if err != nil {
		return err
	}
	defer closeEngine()
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	work.Go(func() {
		if waitForAll(ctx, engine.Fleet()) == nil {
			say(sayReady, name)
		}
	})
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case askBegin:
			begin, err := strconv.ParseInt(rest, 10, 64)
			if err != nil {
				return err
			}
			work.Go(func() { makeCalls(ctx, engine, time.UnixMicro(begin), say) })
		case askStatus:
			say(sayStatus, describe(engine.Status().Fleet))
		}
	}
	return nil
}

// newEngine returns an engine under the rule, and what closes it.
func newEngine(name, address string, say func(word, rest string)) (*core.Engine, func(), error) {
	set, err := rules.Parse("fleet.yaml", []byte(document))
	if err != nil {
		return nil, nil, err
	}
	store, err := redis.Connect(redis.Options{Addresses: []string{address}, App: "example"})
	if err != nil {
		return nil, nil, err
	}
	engine := core.New(core.Config{
		Fleet:  fleet.Config{Backend: store, Instance: name},
		Logger: slog.New(slog.NewTextHandler(logWriter(say), &slog.HandlerOptions{ReplaceAttr: withoutTime})),
	})
	if err := engine.Load(set); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return engine, func() {
		engine.Close()
		_ = store.Close()
	}, nil
}

// waitForAll waits until the fleet has all instances.
func waitForAll(ctx context.Context, member fleet.Member) error {
	for {
		found, err := member.Fleet(ctx)
		if err == nil && found.Count == instances {
			return nil
		}
		if err := waitUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// makeCalls has calls come at random times, from an instant on. A machine that was busy
// elsewhere is caught up with.
func makeCalls(ctx context.Context, engine *core.Engine, due time.Time, say func(word, rest string)) {
	const rate = overload * limit / instances
	for waitUntil(ctx, due) == nil {
		guard, err := engine.Entry(ctx, "partners:call")
		now := strconv.FormatInt(time.Now().UnixMicro(), 10)
		if err == nil {
			guard.Exit()
			say(sayPassed, now)
		} else {
			say(sayRefused, now)
		}
		due = due.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second))) //nolint:gosec // guards no secret
	}
}

// How an instance's description of the limit begins when the server answers.
const stateConnected = "connected"

// describe tells in a line how the limit is.
func describe(s *core.FleetStatus) string {
	state := stateConnected
	if !s.Connected {
		state = "not connected"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %d instances, answers take %v, %d batches sent",
		state, s.Instances, s.Latency.Round(10*time.Microsecond), s.Batches)
	for _, l := range s.Limits {
		fmt.Fprintf(&text, "; %s: mode %s, demand %.0f/s, granted %.0f/s, passed %.0f/s", l.Key, l.Mode, l.Demand, l.Granted, l.Passed)
		if l.Outage {
			fmt.Fprintf(&text, ", outage: goes on with onOutage %s", l.OnOutage)
		}
	}
	return text.String()
}

// speaker returns what writes messages, one at a time. Those that nobody reads are lost.
func speaker(out io.Writer) func(word, rest string) {
	var mu sync.Mutex
	return func(word, rest string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintf(out, "%s %s\n", word, rest)
	}
}

// logWriter makes messages of the lines of a log.
type logWriter func(word, rest string)

func (w logWriter) Write(line []byte) (int, error) {
	w(sayLogged, strings.TrimSpace(string(line)))
	return len(line), nil
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
