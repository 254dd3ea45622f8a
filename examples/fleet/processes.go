package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long anything may take that is no part of the show, on a machine that is
// very busy.
const patience = 2 * time.Minute

// processes are the instances of the service.
type processes struct {
	all    []*process
	counts *counts
	done   sync.WaitGroup

	mu  sync.Mutex
	log []string // lines of the first instance that were not printed yet
}

// process is one instance.
type process struct {
	name   string
	in     io.WriteCloser
	ready  chan struct{} // closed when it knows the others
	ended  chan struct{} // closed when it has ended
	status chan string
}

// startFleet starts the instances and waits until each knows all others.
func startFleet(ctx context.Context, address string) (*processes, error) {
	f := &processes{counts: &counts{}}
	for number := range instances {
		if err := f.startProcess(number, address); err != nil {
			f.stop()
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("the instances do not find each other"))
	defer cancel()
	for _, p := range f.all {
		var err error
		select {
		case <-p.ready:
		case <-p.ended:
			err = fmt.Errorf("%s has ended", p.name)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			f.stop()
			return nil, err
		}
	}
	return f, nil
}

func (f *processes) startProcess(number int, address string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{
		name: fmt.Sprintf("instance-%d", number+1), ready: make(chan struct{}), ended: make(chan struct{}), status: make(chan string, 1),
	}
	command := exec.Command(self, roleInstance, p.name, address) //nolint:gosec,noctx // this program, which ends with its input
	command.Stderr = os.Stderr
	if p.in, err = command.StdinPipe(); err != nil {
		return err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	f.all = append(f.all, p)
	f.done.Go(func() {
		defer close(p.ended)
		f.read(p, number, out)
		if err := command.Wait(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", p.name, err)
		}
	})
	return nil
}

// read takes the messages of an instance until it ends.
func (f *processes) read(p *process, number int, out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case sayReady:
			close(p.ready)
		case sayPassed, sayRefused:
			if at, err := strconv.ParseInt(rest, 10, 64); err == nil {
				f.counts.add(time.UnixMicro(at), number, word == sayPassed)
			}
		case sayStatus:
			p.status <- rest
		case sayLogged:
			f.keep(number, rest)
		}
	}
}

// keep keeps a line of the log of the first instance, if it is about the server.
func (f *processes) keep(number int, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number == 0 && strings.Contains(line, "the backend of the fleet") {
		f.log = append(f.log, line)
	}
}

// begin has calls come from an instant on.
func (f *processes) begin(start time.Time) {
	f.counts.begin(start)
	for _, p := range f.all {
		p.send(fmt.Sprintf("%s %d", askBegin, start.UnixMicro()))
	}
}

// printLog prints what the first instance has logged since the last time.
func (f *processes) printLog(out io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.log {
		fmt.Fprintf(out, "         %s logs: %s\n", f.all[0].name, line)
	}
	f.log = nil
}

// anyState is how every status begins.
const anyState = ""

// printStatus asks the first instance how the limit is until that begins with a text, and
// prints it.
func (f *processes) printStatus(ctx context.Context, out io.Writer, state string) error {
	p := f.all[0]
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New(p.name+" is not "+state))
	defer cancel()
	for {
		p.send(askStatus)
		select {
		case status := <-p.status:
			if strings.HasPrefix(status, state) {
				fmt.Fprintf(out, "         status of %s: %s\n", p.name, status)
				return nil
			}
		case <-p.ended:
			return errors.New(p.name + " has ended")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := waitUntil(ctx, time.Now().Add(20*time.Millisecond)); err != nil {
			return err
		}
	}
}

// stop ends the instances and waits for them. It may be called again.
func (f *processes) stop() {
	for _, p := range f.all {
		_ = p.in.Close() // tells it to end
	}
	f.done.Wait()
}

// send sends a message. If the instance has ended, whoever waits for an answer finds out.
func (p *process) send(message string) { _, _ = io.WriteString(p.in, message+"\n") }
