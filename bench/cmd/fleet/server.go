package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
)

var errNoServer = errors.New("neither redis-server nor valkey-server is on the PATH; " +
	"install one, on Debian and Ubuntu with: apt-get install redis-server")

// patience is how long a server may take to start or to answer.
const patience = 30 * time.Second

// serverProgram returns the path of the server program, or "" if there is none.
func serverProgram() string {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// serverVersion returns what the program says of itself, without how it was built.
func serverVersion(ctx context.Context, program string) string {
	text, _ := exec.CommandContext(ctx, program, "--version").Output()
	version, _, _ := strings.Cut(strings.TrimSpace(string(text)), " sha=")
	return version
}

// server is a Redis or Valkey server, or a sentinel, which keeps nothing on disk.
type server struct {
	dir     string
	port    string
	of      *server // it copies this one
	watched *server // it is a sentinel of this one
	process *exec.Cmd
	ended   chan struct{}
}

// masterName is the name by which a sentinel knows the server that it watches.
const masterName = "primary"

// startServer starts a server, which is empty and nobody's copy if of is nil.
func startServer(ctx context.Context, of *server) (*server, error) {
	return begin(ctx, &server{of: of})
}

// startSentinel starts a sentinel that promotes the replica of a server when that is gone.
func startSentinel(ctx context.Context, watched *server) (*server, error) {
	return begin(ctx, &server{watched: watched})
}

func begin(ctx context.Context, s *server) (*server, error) {
	var err error
	if s.dir, err = os.MkdirTemp("", "penstock-bench-fleet-"); err != nil {
		return nil, err
	}
	for range 5 { // another program may take the port
		if s.port, err = freePort(ctx); err != nil {
			break
		}
		if err = s.run(ctx); err == nil {
			return s, nil
		}
	}
	s.stop()
	return nil, err
}

func freePort(ctx context.Context) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = listener.Close() }()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port), nil
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", s.port) }

// run starts the program, empty, and waits until it answers.
func (s *server) run(ctx context.Context) error {
	args, err := s.arguments()
	if err != nil {
		return err
	}
	var output bytes.Buffer
	s.process = exec.CommandContext(ctx, serverProgram(), args...) //nolint:gosec // the server program
	s.process.Stdout, s.process.Stderr = &output, &output
	if err := s.process.Start(); err != nil {
		s.process = nil
		return err
	}
	s.ended = make(chan struct{})
	go func(p *exec.Cmd, ended chan struct{}) { _ = p.Wait(); close(ended) }(s.process, s.ended)
	own := fmt.Sprintf("process_id:%d\r\n", s.process.Process.Pid) // not that of another server at this port
	return await(ctx, func() error {
		select {
		case <-s.ended:
			return errors.Join(errEnded, errors.New(strings.TrimSpace(output.String())))
		default:
		}
		text, err := s.info(ctx, "server")
		if err == nil && !strings.Contains(text, own) {
			err = errors.New("another server answers")
		}
		return err
	})
}

var errEnded = errors.New("the server has ended")

// await calls a function until it returns nil.
func await(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f()
		if err == nil || errors.Is(err, errEnded) {
			return err
		}
		if pause(ctx, 10*time.Millisecond) != nil {
			return err
		}
	}
}

func (s *server) arguments() ([]string, error) {
	if s.watched != nil { // a sentinel writes what it learns into its file
		path := filepath.Join(s.dir, "sentinel.conf")
		text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s 127.0.0.1 %[4]s 1\n"+
			"sentinel down-after-milliseconds %[3]s 300\nsentinel failover-timeout %[3]s 1000\n",
			s.port, s.dir, masterName, s.watched.port)
		return []string{path, "--sentinel"}, os.WriteFile(path, []byte(text), 0o600)
	}
	args := []string{
		"--bind", "127.0.0.1", "--port", s.port, "--save", "", "--appendonly", "no", "--dir", s.dir,
		"--repl-diskless-sync-delay", "0",
	}
	if s.of != nil {
		args = append(args, "--replicaof", "127.0.0.1 "+s.of.port)
	}
	return args, nil
}

// kill ends the server at once. What it has counted is lost.
func (s *server) kill() error {
	if err := s.process.Process.Kill(); err != nil {
		return err
	}
	<-s.ended
	return nil
}

// signal sends a signal to the process of the server.
func (s *server) signal(signal syscall.Signal) error { return s.process.Process.Signal(signal) }

// stop ends the server and removes its files.
func (s *server) stop() {
	if s == nil {
		return
	}
	if s.process != nil {
		_ = s.process.Process.Kill() // it may have ended
		<-s.ended
	}
	_ = os.RemoveAll(s.dir)
}

// do sends a command on a connection of its own.
func (s *server) do(ctx context.Context, command ...string) (rueidis.RedisResult, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.address()}, ForceSingleClient: true, DisableCache: true, DisableRetry: true,
	})
	if err != nil {
		return rueidis.RedisResult{}, err
	}
	defer client.Close()
	result := client.Do(ctx, client.B().Arbitrary(command...).Build())
	return result, result.Error()
}

// info returns a section of what the server says of itself.
func (s *server) info(ctx context.Context, section string) (string, error) {
	result, err := s.do(ctx, "INFO", section)
	if err != nil {
		return "", err
	}
	return result.ToString()
}
