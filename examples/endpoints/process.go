package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// process is a service in a process of its own.
type process struct {
	command *exec.Cmd
	input   io.WriteCloser // how long payments take, line by line
	at      string
}

// computing is a service in a process of its own, which computes on one processor.
func computing() stage { return stage{loopback(), 0.5, startProcess} }

func startProcess(ctx context.Context, document string) (running, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, path, "-serve", document)} //nolint:gosec // this program
	p.command.Env, p.command.Stderr = append(os.Environ(), "GOMAXPROCS=1"), os.Stderr
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		p.close()
		return nil, fmt.Errorf("the service did not start: %w", err)
	}
	p.at = strings.TrimSpace(line)
	return p, nil
}

func (p *process) address() string { return p.at }

func (p *process) setPay(d time.Duration) { fmt.Fprintln(p.input, d) }

func (p *process) close() {
	_ = p.input.Close()
	_ = p.command.Wait()
}

// serveProcess is the process of a service. It ends with the standard input.
func serveProcess(document string) error {
	s, err := startService(loopback(), document, newComputer())
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Println(s.address())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		d, err := time.ParseDuration(lines.Text())
		if err != nil {
			return err
		}
		s.setPay(d)
	}
	return lines.Err()
}

// newComputer returns a function that computes for a time, as long as nobody else takes the processor.
func newComputer() func(time.Duration) {
	const steps = 1 << 20
	shortest := time.Hour
	for range 20 { // the quickest, for other processes may take the processor meanwhile
		start := time.Now()
		runtime.KeepAlive(compute(steps))
		shortest = min(shortest, time.Since(start))
	}
	rate := steps / shortest.Seconds()
	return func(d time.Duration) { runtime.KeepAlive(compute(uint64(d.Seconds() * rate))) }
}

// compute keeps a processor busy for so many steps.
func compute(steps uint64) uint64 {
	x := steps
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
