package etcdtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	attempts     = 10 // to listen on free ports, or on those of before a restart
	portInterval = 200 * time.Millisecond
	readyTimeout = 2 * time.Minute // for the election of the leader

	// silentTimeout is how long a server that stops waits, twice, for connections
	// on which no data was ever sent.
	silentTimeout = 2 * time.Second
)

// Server is an etcd cluster of one member. Its methods may be called from
// several goroutines.
type Server struct {
	opts      Options
	addresses addresses

	mu     sync.Mutex // guards the fields below, which Stop and Restart change
	dir    string     // of the data; "" if stopped without data
	etcd   *embed.Etcd
	grpc   *grpc.Server
	client *clientv3.Client
}

// Start starts a server on free ports of 127.0.0.1 and returns once it serves
// requests. The caller must stop it.
func Start(opts Options) (*Server, error) {
	s := &Server{opts: opts}
	for attempt := 1; ; attempt++ {
		err := s.startAnywhere()
		if err == nil {
			return s, nil
		}
		// Another process may take a port before the server listens on it.
		if attempt == attempts || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
	}
}

func (s *Server) startAnywhere() (err error) {
	if s.addresses, err = freeAddresses(); err != nil {
		return fmt.Errorf("etcdtest: looking for free ports: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin()
}

// Endpoint returns the server's URL for clients. It stays the same over Stop
// and Restart.
func (s *Server) Endpoint() string {
	if s.opts.tls() {
		return "https://" + s.addresses.client
	}
	return "http://" + s.addresses.client
}

// Client returns a client of the server, without credentials. It belongs to the
// server: Stop closes it, Restart makes a new one. It is nil while the server
// is stopped. For a server with TLS the caller must make a client.
func (s *Server) Client() *clientv3.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// Restart stops the server, if it runs, and starts it on the same ports with
// the same data. After a Stop that removed the data (see [Options.Dir]), Restart
// starts an empty cluster.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
	for attempt := 1; ; attempt++ {
		err := s.begin()
		// The system may have given one of the ports to another connection.
		if attempt == attempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		time.Sleep(portInterval)
	}
}

// begin starts the server. If that fails, it stops what has started.
func (s *Server) begin() error {
	dir := s.dir
	if err := s.start(); err != nil {
		s.halt()
		if dir == "" || !errors.Is(err, syscall.EADDRINUSE) {
			s.clean()
		}
		return fmt.Errorf("etcdtest: starting the server: %w", err)
	}
	return nil
}

// Stop stops the server and waits until it has ended. Requests and watches under
// way are aborted. For connections on which no data was ever sent Stop waits no
// longer than four seconds; a goroutine of etcd remains until they are closed.
// Without [Options.Dir] Stop removes the data. Further calls do nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
	s.clean()
}

func (s *Server) start() (err error) {
	if s.dir, err = s.dataDir(); err != nil {
		return err
	}
	config, err := s.config()
	if err != nil {
		return err
	}
	serving := make(chan *grpc.Server, 1)
	config.ServiceRegister = func(server *grpc.Server) { serving <- server }
	if s.etcd, err = embed.StartEtcd(config); err != nil {
		return err
	}
	select {
	case s.grpc = <-serving:
	case err := <-s.etcd.Err():
		return err
	case <-time.After(readyTimeout):
		return fmt.Errorf("not ready within %v", readyTimeout)
	}
	s.client, err = clientv3.New(clientv3.Config{
		Endpoints: []string{s.Endpoint()},
		Logger:    zap.NewNop(),
	})
	return err
}

// halt stops the server and keeps the data.
func (s *Server) halt() {
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
	if s.grpc != nil {
		// Etcd.Close alone waits for seconds for open watches to end.
		s.grpc.Stop()
		s.grpc = nil
	}
	if s.etcd != nil {
		closeEtcd(s.etcd)
		s.etcd = nil
	}
}

// closeEtcd closes the server and waits until its ports are free and its data are
// closed. By itself etcd would wait for connections on which no data was ever sent,
// for as long as they are open.
func closeEtcd(server *embed.Etcd) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		server.Close()
	}()
	if within(silentTimeout, closed) {
		return
	}
	for _, listener := range server.Clients {
		_ = listener.Close()
	}
	for _, listener := range server.Peers {
		_ = listener.Close()
	}
	server.Server.Stop()
	within(silentTimeout, closed)
}

// within reports whether done is closed within the time limit.
func within(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// clean removes the data if they are in a temporary directory.
func (s *Server) clean() {
	if s.opts.Dir == "" && s.dir != "" {
		_ = os.RemoveAll(s.dir)
		s.dir = ""
	}
}

func (s *Server) dataDir() (string, error) {
	switch {
	case s.dir != "":
		return s.dir, nil
	case s.opts.Dir != "":
		return filepath.Abs(s.opts.Dir)
	default:
		return os.MkdirTemp("", "etcdtest-")
	}
}
