//go:build unix

package redistest

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take for anything, on a machine that is very busy.
const patience = 2 * time.Minute

// Options says what a server is like.
type Options struct {
	Password  string   // of the user default
	TLS       bool     // only connections with TLS, with a certificate of a new authority or that of ReplicaOf
	ReplicaOf *Server  // the server copies another one
	Args      []string // further arguments of the program, such as "--maxmemory", "10mb"

	cluster  bool
	sentinel *Server // the server is a sentinel that watches another one
}

// Server is a server that ends with its test.
type Server struct {
	t       testing.TB
	options Options
	port    int
	dir     string
	process *exec.Cmd // nil: a server that somebody else runs
	address string
	tls     *tls.Config

	certificates string // the directory that has them
}

// Program returns the path of the server program, or "" if there is none: the one in
// PENSTOCK_REDIS_SERVER or, without it, the first on the PATH.
func Program() string {
	if path := os.Getenv("PENSTOCK_REDIS_SERVER"); path != "" {
		return path
	}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Any returns a server that need not be disturbed: the one in PENSTOCK_REDIS_ADDR, or a new
// one. Tests keep apart by the names of their apps.
func Any(t testing.TB) *Server {
	t.Helper()
	if address := os.Getenv("PENSTOCK_REDIS_ADDR"); address != "" {
		return &Server{t: t, address: address}
	}
	return Start(t, Options{})
}

// Start starts a server, which is empty. It skips the test if there is no server program.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	if Program() == "" {
		t.Skip("SKIPPED, no real server: neither redis-server nor valkey-server is on the PATH. " +
			"Install one, on Debian and Ubuntu with: apt-get install redis-server")
	}
	s := &Server{t: t, options: options, dir: t.TempDir()}
	if options.TLS {
		s.certify(options.ReplicaOf, options.sentinel)
	}
	t.Cleanup(s.stop)
	for attempt := 1; ; attempt++ {
		s.port = freePort(t, options.cluster)
		s.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		err := s.run()
		if err == nil {
			return s
		}
		if attempt == 5 || !strings.Contains(err.Error(), "in use") {
			t.Fatal(err)
		}
	}
}

// Addr returns the host:port of the server.
func (s *Server) Addr() string { return s.address }

// TLS returns what a client needs to trust the server, or nil.
func (s *Server) TLS() *tls.Config { return s.tls.Clone() }

// freePort returns a loopback port on which nobody listens at present. A node of a cluster
// also needs the one 10,000 above.
func freePort(t testing.TB, cluster bool) int {
	t.Helper()
	for range 1000 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		_ = listener.Close()
		if !cluster {
			return port
		}
		bus, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+10_000)))
		if err == nil {
			_ = bus.Close()
			return port
		}
	}
	t.Fatal("redistest: no port is free")
	return 0
}

// run starts the program and waits until it answers.
func (s *Server) run() error {
	log := filepath.Join(s.dir, "log")
	args := s.arguments(log)
	s.process = exec.Command(Program(), args...) //nolint:gosec // the server program
	var output bytes.Buffer
	s.process.Stdout, s.process.Stderr = &output, &output
	if err := s.process.Start(); err != nil {
		s.process = nil
		return fmt.Errorf("redistest: %w", err)
	}
	// Another server may have taken the port.
	own := fmt.Sprintf("process_id:%d\r\n", s.process.Process.Pid)
	ended := make(chan struct{})
	go func(p *exec.Cmd) { _ = p.Wait(); close(ended) }(s.process)
	deadline := time.Now().Add(patience)
	for {
		reply, err := s.Try("INFO")
		if text, ok := reply.(string); ok && strings.Contains(text, own) && !strings.Contains(text, "\nloading:1") {
			return nil
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(log) //nolint:gosec // a file of the test
			return fmt.Errorf("redistest: the server ended: %s %s", output.String(), text)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redistest: the server does not answer: %v, %w", reply, err)
		}
	}
}

func (s *Server) arguments(log string) []string {
	port := strconv.Itoa(s.port)
	if watched := s.options.sentinel; watched != nil {
		// A sentinel writes what it learns into its file.
		config := filepath.Join(s.dir, "sentinel.conf")
		var text strings.Builder
		fmt.Fprintf(&text, "bind 127.0.0.1\ndir %s\nlogfile %s\n"+
			"sentinel monitor %[3]s 127.0.0.1 %[4]d 1\n"+
			"sentinel down-after-milliseconds %[3]s 3000\nsentinel failover-timeout %[3]s 5000\n",
			s.dir, log, MasterName, watched.port)
		for _, setting := range s.listening(port) {
			fmt.Fprintf(&text, "%s %s\n", setting[0], setting[1])
		}
		if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return []string{config, "--sentinel"}
	}
	args := []string{
		"--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir, "--logfile", log, "--daemonize", "no",
		"--repl-diskless-sync-delay", "0",
	}
	for _, setting := range s.listening(port) {
		args = append(args, "--"+setting[0], setting[1])
	}
	if s.options.Password != "" {
		args = append(args, "--requirepass", s.options.Password)
	}
	if of := s.options.ReplicaOf; of != nil {
		args = append(args, "--replicaof", "127.0.0.1", strconv.Itoa(of.port))
	}
	if s.options.cluster {
		args = append(args, "--cluster-enabled", "yes", "--cluster-config-file", s.path("nodes.conf"),
			"--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no")
	}
	return append(args, s.options.Args...)
}

// listening returns the settings that say how the server listens.
func (s *Server) listening(port string) [][2]string {
	if !s.options.TLS {
		return [][2]string{{"port", port}}
	}
	at := func(name string) string { return filepath.Join(s.certificates, name) }
	return [][2]string{
		{"port", "0"},
		{"tls-port", port},
		{"tls-auth-clients", "no"},
		{"tls-replication", "yes"},
		{"tls-cert-file", at("cert.pem")},
		{"tls-key-file", at("key.pem")},
		{"tls-ca-cert-file", at("ca.pem")},
	}
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// own skips the test if the server is somebody else's.
func (s *Server) own() *os.Process {
	s.t.Helper()
	if s.process == nil {
		s.t.Skip("SKIPPED: the server at " + s.address + " is not the test's own")
	}
	return s.process.Process
}

func (s *Server) signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.own().Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Kill ends the server at once, as kill -9 does.
func (s *Server) Kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	deadline := time.Now().Add(patience)
	for s.process.Process.Signal(syscall.Signal(0)) == nil {
		if time.Now().After(deadline) {
			s.t.Fatal("redistest: the server does not end")
		}
		time.Sleep(time.Millisecond)
	}
}

// Restart starts a server that was killed, at its address and empty.
func (s *Server) Restart() {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := s.run()
		if err == nil {
			return
		}
		if time.Now().After(deadline) || !strings.Contains(err.Error(), "in use") {
			s.t.Fatal(err)
		}
	}
}

// Pause stops the server where it stands, until Resume: it keeps its connections, and accepts
// new ones, but does not answer.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume has a paused server go on.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

// Flush empties the server.
func (s *Server) Flush() { s.t.Helper(); s.Do("FLUSHALL") }

// stop ends the process of the test.
func (s *Server) stop() {
	if s.process != nil {
		_ = s.process.Process.Kill() // it may have ended
		deadline := time.Now().Add(patience)
		for s.process.Process.Signal(syscall.Signal(0)) == nil && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
		}
	}
}
