package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
)

// What services over HTTP are called for. Fiber has the resource of Sentinel with the path.
const (
	route    = "/orders/:id"
	path     = "/orders/7"
	resource = http.MethodGet + ":" + route
)

// enterSentinel enters a call as the adapters of sentinel-golang for servers do.
func enterSentinel(resource string, kind base.ResourceType) (*base.SentinelEntry, *base.BlockError) {
	return api.Entry(resource, api.WithResourceType(kind), api.WithTrafficType(base.Inbound))
}

// overHTTP returns a service of a handler.
func overHTTP(handler http.Handler) *Service {
	server := &http.Server{Handler: handler} //nolint:gosec // no timeouts: its only clients are those of this package
	request := httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody)
	answer := &recorder{header: make(http.Header)}
	return &Service{
		Call: func() bool {
			clear(answer.header)
			answer.status = 0
			handler.ServeHTTP(answer, request)
			return answer.status == http.StatusOK
		},
		serve: server.Serve,
		stop:  func() { _ = server.Close() },
		dial:  dialHTTP,
	}
}

// recorder is a response of which only the status is kept.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(text []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return len(text), nil
}

// mostClients is how many connections a client keeps.
const mostClients = 64

func dialHTTP(address string) (*Client, error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost: mostClients,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	client := http.Client{Transport: transport}
	return &Client{
		Call:  func() (bool, error) { return get(&client, "http://"+address+path) },
		Close: transport.CloseIdleConnections,
	}, nil
}

// get returns whether the status is 200. Any other than that and 429 is an error.
func get(client *http.Client, url string) (bool, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, fmt.Errorf("service: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return false, fmt.Errorf("service: %w", err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK && response.StatusCode != http.StatusTooManyRequests {
		err = fmt.Errorf("service: status %d", response.StatusCode)
	}
	return response.StatusCode == http.StatusOK, err
}
