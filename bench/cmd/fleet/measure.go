package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// result is what was measured in a run.
type result struct {
	scenario
	counts
	usage

	clock time.Time // what the clock of the machine, and so of the server, showed at the start

	// When the fault began and when it was over, since the start.
	faultBegan, faultEnded time.Duration
}

// measure makes a run.
func measure(ctx context.Context, s scenario) (result, error) {
	r := result{scenario: s}
	ctx, cancel := context.WithCancel(ctx) // ends what still runs if this fails
	defer cancel()
	needs := setUp{proxy: s.Delay > 0}
	if s.Fault != nil {
		needs = s.Fault.setUp
	}
	rig, err := newRig(ctx, needs)
	if err != nil {
		return r, fmt.Errorf("starting a server: %w", err)
	}
	defer rig.stop()
	if s.Delay > 0 {
		rig.proxy.setDelay(s.Delay)
	}
	processes, err := startInstances(ctx, &s, rig)
	if err != nil {
		return r, err
	}
	if _, err := rig.primary.do(ctx, "CONFIG", "RESETSTAT"); err != nil {
		return r, err
	}
	start, err := startCalls(processes)
	if err != nil {
		return r, err
	}
	r.clock = start
	if err := r.observe(ctx, rig, start); err != nil {
		return r, err
	}
	for _, p := range processes {
		summary, calls, err := p.report()
		if err != nil {
			return r, err
		}
		r.add(summary, calls)
	}
	r.sort()
	return r, r.check()
}

// check refuses a result that measures something else than was meant.
func (r *result) check() error {
	switch {
	case len(r.calls) == 0:
		return errors.New("there were no calls")
	case r.Fault == nil && r.scripts == 0:
		return errors.New("the server was never asked")
	default:
		return nil
	}
}

// observe lets the fault happen, or reads at the end of the run what it has cost the server.
func (r *result) observe(ctx context.Context, rig *rig, start time.Time) error {
	if r.Fault == nil {
		if err := pause(ctx, time.Until(start.Add(r.Duration))); err != nil {
			return err
		}
		var err error
		r.usage, err = readUsage(ctx, rig.primary, r.Mode)
		return err
	}
	if err := pause(ctx, time.Until(start.Add(r.Fault.at))); err != nil {
		return err
	}
	r.faultBegan = time.Since(start)
	if err := r.Fault.happen(ctx, rig); err != nil {
		return fmt.Errorf("the fault did not happen: %w", err)
	}
	r.faultEnded = time.Since(start)
	return nil
}

// process is a process of the fleet.
type process struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

// startInstances starts the processes and waits until all of them are ready.
func startInstances(ctx context.Context, s *scenario, rig *rig) ([]*process, error) {
	addresses, sentinel := rig.addresses()
	all := make([]*process, s.Instances)
	for i := range all {
		var err error
		t := task{Scenario: *s, Instance: i, Addresses: addresses, Sentinel: sentinel}
		if all[i], err = startInstance(ctx, &t); err != nil {
			return nil, err
		}
	}
	for _, p := range all {
		if _, err := p.output.ReadString('\n'); err != nil {
			return nil, fmt.Errorf("a process of the fleet did not start: %w", err)
		}
	}
	return all, nil
}

func startInstance(ctx context.Context, t *task) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, self, roleInstance)} //nolint:gosec // this program
	p.command.Stderr = os.Stderr
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewReaderSize(output, 1<<16)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	return p, json.NewEncoder(p.input).Encode(t)
}

// startCalls has all processes begin to call at one instant, which it returns.
func startCalls(processes []*process) (time.Time, error) {
	const ahead = 200 * time.Millisecond
	start := time.Now().Add(ahead)
	instant, err := clockOfAll()
	if err != nil {
		return start, err
	}
	for _, p := range processes {
		if err := json.NewEncoder(p.input).Encode(instant + ahead); err != nil {
			return start, err
		}
	}
	return start, nil
}

// report reads what the process reports at its end, and waits for that.
func (p *process) report() (summary, []call, error) {
	s, calls, err := readCalls(p.output)
	return s, calls, errors.Join(err, p.command.Wait())
}
