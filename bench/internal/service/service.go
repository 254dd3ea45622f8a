// Package service has one small service in each of several frameworks: as it is, behind the
// adapter of Penstock, and behind a middleware that makes the calls of Sentinel's API which the
// adapter of sentinel-golang for that framework makes. Those adapters are modules of their own,
// which are not required here, for other versions of the frameworks.
package service

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/alibaba/sentinel-golang/core/flow"

	"github.com/penstock-go/penstock/core"
	penstockflow "github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// Guard is what guards a service.
type Guard string

// The guards.
const (
	Bare     Guard = "bare" // none
	Penstock Guard = "penstock"
	Sentinel Guard = "sentinel"
)

// Guards returns all guards.
func Guards() []Guard { return []Guard{Bare, Penstock, Sentinel} }

// Framework makes services in one framework. A guard lets so many calls pass in a second; the
// rules of Sentinel are global to the process.
type Framework struct {
	Name string
	New  func(guard Guard, limit int) (*Service, error)
}

// Frameworks returns all frameworks.
func Frameworks() []Framework {
	return []Framework{{"gin", newGin}, {"echo", newEcho}, {"fiber", newFiber}, {"kratos", newKratos}, {"grpc", newGRPC}}
}

// Service answers calls that do nothing.
type Service struct {
	// Call makes a call without a network and returns whether it passed. It is not safe for
	// concurrent use.
	Call func() bool

	serve func(net.Listener) error
	stop  func()
	dial  func(address string) (*Client, error)
}

// Client makes calls over a network. It is safe for concurrent use.
type Client struct {
	Call  func() (passed bool, err error)
	Close func()
}

// Listen serves the service on a port of the loopback interface, and returns a client and a
// function that ends both.
func (s *Service) Listen() (*Client, func(), error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("service: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.serve(listener) // if it fails, so do calls of the client
	}()
	client, err := s.dial(listener.Addr().String())
	if err != nil {
		s.stop()
		return nil, nil, fmt.Errorf("service: %w", err)
	}
	return client, func() {
		client.Close()
		s.stop()
		<-ended
	}, nil
}

// penstockEngine returns an engine with a limit per second for a resource.
func penstockEngine(resource string, limit int) (*core.Engine, error) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	err := engine.Load(rules.Set{Flow: []penstockflow.Rule{{Name: "limit", Resource: resource, Limit: float64(limit)}}})
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return engine, nil
}

// limitSentinel gives Sentinel a limit per second for a resource.
func limitSentinel(resource string, limit int) error {
	if _, err := flow.LoadRules([]*flow.Rule{{Resource: resource, Threshold: float64(limit)}}); err != nil {
		return fmt.Errorf("service: rules of sentinel: %w", err)
	}
	return nil
}
