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
	attempts     = 10 // to find free ports, or to get those that were used before
	portInterval = 200 * time.Millisecond
	readyTimeout = 30 * time.Second // for the server to elect itself

	// silentTimeout is how long a server that stops waits, twice, for connections
	// on which nothing was ever said.
	silentTimeout = 2 * time.Second
)

// Server is an etcd cluster of one member. Its methods may be called from
// several goroutines.
type Server struct {
	opts      Options
	addresses addresses

	mu     sync.Mutex // guards what follows: all of it changes with Stop and Restart
	dir    string     // where the data are; "" when stopped and nothing is kept
	etcd   *embed.Etcd
	grpc   *grpc.Server
	client *clientv3.Client
}

// Start starts a server on free ports of 127.0.0.1 and returns once it serves.
// The caller stops it.
func Start(opts Options) (*Server, error) {
	s := &Server{opts: opts}
	for attempt := 1; ; attempt++ {
		err := s.startAnywhere()
		if err == nil {
			return s, nil
		}
		// Another process may take a port between its choice and its use.
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
// is stopped. A server that demands TLS wants a client of the caller's making.
func (s *Server) Client() *clientv3.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// Restart stops the server, if it runs, and starts it on the same ports with
// the same data. Data in a temporary directory do not survive a Stop: Restart
// after it begins with an empty cluster.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
	for attempt := 1; ; attempt++ {
		err := s.begin()
		// Somebody else's connection may have been given one of the ports.
		if attempt == attempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		time.Sleep(portInterval)
	}
}

// begin starts the server, or leaves nothing of it.
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

// Stop ends the server and waits until all of it has ended. Requests and
// watches under way are cut off. Connections on which nothing was ever said are
// waited for no longer than four seconds; a goroutine of etcd stays with them until
// they are closed. Without [Options.Dir] Stop removes the data. It may be called
// again.
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

// halt ends what runs and keeps the data.
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

// closeEtcd returns when the server has ended: its ports are free and its data are
// closed. Left to itself, etcd first waits for those who have connected and never
// said anything, for as long as they stay.
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

// within returns whether something is done within a time.
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

// clean removes the data if they are not to be kept.
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
