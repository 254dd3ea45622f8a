package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// server is what the instances share. It keeps its address when it is started again.
type server interface {
	about() string
	address() string
	kill()
	restart(ctx context.Context) error
	stop()
}

// startServer starts a real server if there is a program on the PATH, else one in this
// process.
func startServer(ctx context.Context) (server, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return startReal(ctx, path)
		}
	}
	s := &embedded{server: miniredis.NewMiniRedis()}
	if err := s.server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.listensAt = s.server.Addr()
	return s, nil
}

// embedded is a server in this process.
type embedded struct {
	server    *miniredis.Miniredis
	listensAt string
}

func (*embedded) about() string {
	return "a server in this process (miniredis), since neither redis-server nor valkey-server is on the PATH"
}
func (s *embedded) address() string { return s.listensAt }
func (s *embedded) kill()           { s.server.Close() }
func (s *embedded) stop()           { s.server.Close() }

func (s *embedded) restart(ctx context.Context) error {
	s.server = miniredis.NewMiniRedis()
	return retry(ctx, func() error { return s.server.StartAddr(s.listensAt) })
}

// realServer is a process of a server program.
type realServer struct {
	path string
	port int
	dir  string
	run  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func startReal(ctx context.Context, path string) (server, error) {
	dir, err := os.MkdirTemp("", "penstock-example-")
	if err != nil {
		return nil, err
	}
	s := &realServer{path: path, dir: dir}
	err = retry(ctx, func() error { // somebody may take the port
		if s.port, err = freePort(); err != nil {
			return err
		}
		return s.start(ctx)
	})
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *realServer) about() string {
	return fmt.Sprintf("%s at %s", filepath.Base(s.path), s.address())
}
func (s *realServer) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// start starts the program and waits until it answers.
func (s *realServer) start(ctx context.Context) error {
	var output bytes.Buffer
	s.run = exec.Command(s.path, "--bind", "127.0.0.1", "--port", fmt.Sprint(s.port), //nolint:gosec,noctx // ends with kill
		"--save", "", "--appendonly", "no", "--dir", s.dir)
	s.run.Stdout, s.run.Stderr = &output, &output
	if err := s.run.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	s.done = done
	go func(run *exec.Cmd) { defer close(done); _ = run.Wait() }(s.run)
	for !s.answers(ctx) {
		select {
		case <-done:
			return fmt.Errorf("%s has ended: %s", s.path, output.String())
		default:
		}
		if err := waitUntil(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			s.kill()
			return err
		}
	}
	return nil
}

// answers says whether it is this server that answers at the address.
func (s *realServer) answers(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", s.address())
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // else it waits for longer
	if _, err := io.WriteString(conn, "INFO server\r\nQUIT\r\n"); err != nil {
		return false
	}
	text, _ := io.ReadAll(conn) // what has come is enough
	return strings.Contains(string(text), fmt.Sprintf("process_id:%d\r\n", s.run.Process.Pid))
}

func (s *realServer) kill() {
	if s.done == nil {
		return
	}
	_ = s.run.Process.Kill() // it may have ended
	<-s.done
}

func (s *realServer) restart(ctx context.Context) error {
	return retry(ctx, func() error { return s.start(ctx) })
}

func (s *realServer) stop() {
	s.kill()
	_ = os.RemoveAll(s.dir) // the system does so otherwise
}

// retry does something up to ten times.
func retry(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || attempt == 10 || ctx.Err() != nil {
			return err
		}
		if err := waitUntil(ctx, time.Now().Add(100*time.Millisecond)); err != nil {
			return err
		}
	}
}

// freePort returns a port of this machine on which nobody listens at present.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is there at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no port is free")
	}
	return address.Port, nil
}
