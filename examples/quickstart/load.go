package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/core"
)

// stream is a load on one resource: so many calls at once, again and again,
// whether or not earlier ones were answered.
type stream struct {
	resource string
	every    time.Duration
	calls    int
	call     func(ctx context.Context) (passed bool, err error)
	stalls   *stalls

	offered, passed, refused atomic.Int64
	trouble                  atomic.Pointer[error] // the first answer that is neither
}

// perSecond returns how many calls the stream makes in a second.
func (s *stream) perSecond() int { return int(time.Second/s.every) * s.calls }

// run makes calls until ctx ends, and returns when all are answered. A machine
// that was busy elsewhere is caught up with: the load is what it says.
func (s *stream) run(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due := time.Now(); ; due = due.Add(s.every) {
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		s.stalls.note(time.Since(due))
		for range s.calls {
			s.offered.Add(1)
			calls.Go(s.callOnce)
		}
	}
}

func (s *stream) callOnce() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	began := time.Now()
	switch passed, err := s.call(ctx); {
	case err != nil:
		err = fmt.Errorf("%s: %w", s.resource, err)
		s.trouble.CompareAndSwap(nil, &err)
	case passed:
		s.passed.Add(1)
	default:
		s.refused.Add(1)
		s.stalls.note(time.Since(began)) // refusals are answered at once
	}
}

// client makes the calls, over real connections.
type client struct {
	http *http.Client
	pay  *http.Client // guarded
	grpc *grpc.ClientConn
	shop *shop

	stalls *stalls // of the load

	refusal atomic.Pointer[string] // the last one of POST /orders, as it was answered
}

func newClient(s *shop) (*client, error) {
	connection, err := grpc.NewClient(s.grpcAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &client{
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		pay:  newPayClient(s.engine),
		grpc: connection,
		shop: s, stalls: newStalls(s.engine.Clock()),
	}, nil
}

func (c *client) close() {
	c.http.CloseIdleConnections()
	c.pay.CloseIdleConnections()
	_ = c.grpc.Close()
}

// streams returns the load: more than the limit on the HTTP resources, and on
// the gRPC service less than the limit, but in bursts. The payment service could do
// it all, if it did not break.
func (c *client) streams() []*stream {
	return []*stream{
		{resource: browse, every: 20 * time.Millisecond, calls: 6, call: c.browse, stalls: c.stalls},
		{resource: create, every: 20 * time.Millisecond, calls: 3, call: c.create, stalls: c.stalls},
		{resource: reserve, every: 250 * time.Millisecond, calls: 10, call: c.reserve, stalls: c.stalls},
		{resource: pay, every: 20 * time.Millisecond, calls: 1, call: c.charge, stalls: c.stalls},
	}
}

func (c *client) browse(ctx context.Context) (bool, error) {
	return c.request(ctx, http.MethodGet, "/orders/4711")
}

func (c *client) create(ctx context.Context) (bool, error) {
	return c.request(ctx, http.MethodPost, "/orders")
}

func (c *client) request(ctx context.Context, method, path string) (bool, error) {
	response, err := c.answer(ctx, method, path)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return false, err
	case response.StatusCode == http.StatusTooManyRequests:
		if method == http.MethodPost {
			c.keep(response, body)
		}
		return false, nil
	case response.StatusCode/100 == 2:
		return true, nil
	}
	return false, fmt.Errorf("answered %s", response.Status)
}

func (c *client) answer(ctx context.Context, method, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.shop.httpAddress+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return c.http.Do(request)
}

func (c *client) reserve(ctx context.Context) (bool, error) {
	err := c.grpc.Invoke(ctx, reserve, wrapperspb.String("chair"), new(wrapperspb.Int64Value))
	if status.Code(err) == codes.ResourceExhausted {
		return false, nil
	}
	return err == nil, err
}

// charge calls the payment service, which may fail. Only the breaker refuses.
func (c *client) charge(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.shop.payments.address+"/charge", http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := c.pay.Do(request)
	switch {
	case errors.Is(err, core.ErrBlocked):
		return false, nil
	case err != nil:
		return false, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return true, err
}
