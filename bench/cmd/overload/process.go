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
	"strings"
	"syscall"
	"time"
)

// The processors of the two processes.
const (
	processorOfServer    = 0
	processorOfGenerator = 1
)

var errNoQuota = errors.New("no cgroup with a quota can be made here")

// serverProcess is the process of a service.
type serverProcess struct {
	command *exec.Cmd
	input   io.WriteCloser
	address string
	cgroup  *cgroup // nil without a quota
}

// startServer starts a service in a process of its own.
func startServer(ctx context.Context, of service) (*serverProcess, error) {
	s := &serverProcess{}
	var err error
	if of.quota > 0 {
		if s.cgroup, err = newCgroup(of.quota, quotaPeriod); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoQuota, err)
		}
	}
	if s.command, err = self(ctx, roleServe, "-service", of.name, "-rules", of.rule); err != nil {
		return nil, err
	}
	if s.input, err = s.command.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := s.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := startOn(processorOfServer, s.command); err != nil {
		return nil, err
	}
	if s.cgroup != nil {
		if err := s.cgroup.add(s.command.Process.Pid); err != nil {
			s.stop()
			return nil, fmt.Errorf("%w: %w", errNoQuota, err)
		}
	}
	fmt.Fprintln(s.input)
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	s.address = strings.TrimSpace(line)
	return s, nil
}

// stop ends the service.
func (s *serverProcess) stop() {
	_ = s.input.Close()
	_ = s.command.Wait()
	s.cgroup.remove()
}

// generate has a process of its own make requests.
func (s *serverProcess) generate(ctx context.Context, of generatorSettings) (outcome, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return outcome{}, err
	}
	command, err := self(ctx, roleGenerate, "-address", s.address, "-settings", string(text))
	if err != nil {
		return outcome{}, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return outcome{}, err
	}
	if err := startOn(processorOfGenerator, command); err != nil {
		return outcome{}, err
	}
	var o outcome
	decoded := json.NewDecoder(output).Decode(&o)
	return o, errors.Join(decoded, command.Wait())
}

// self returns a command that runs this program in a role.
func self(ctx context.Context, args ...string) (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, path, args...) //nolint:gosec // this program
	command.Stderr = os.Stderr
	return command, nil
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
