package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// outcome is what became of the requests to an endpoint in a phase.
type outcome struct {
	requests, answered, refused int // answered in time
}

// result is the outcomes of a run, by phase and path.
type result struct {
	mu     sync.Mutex
	phases []map[string]*outcome
}

func newResult(phases int) *result {
	r := &result{phases: make([]map[string]*outcome, phases)}
	for i := range r.phases {
		r.phases[i] = make(map[string]*outcome)
		for _, e := range endpoints() {
			r.phases[i][e.path] = new(outcome)
		}
	}
	return r
}

// load makes requests at random times, whether or not earlier ones were answered.
type load struct {
	url    string
	client *http.Client
	result *result
	share  float64 // of the requests
	calls  sync.WaitGroup
}

func newLoad(network network, address string, r *result) *load {
	return &load{url: "http://" + address, result: r, client: &http.Client{Transport: &http.Transport{
		DialContext: network.dial, MaxIdleConnsPerHost: 1000, MaxIdleConns: 1000,
	}}}
}

// run makes the requests of a phase. A machine that was busy elsewhere is caught up with.
func (l *load) run(ctx context.Context, index int, p phase) error {
	start := time.Now()
	var all sync.WaitGroup
	for _, e := range endpoints() {
		rate := e.rate * l.share
		if e.computes > 0 && e.path != "/export" {
			rate *= p.computing
		}
		all.Go(func() {
			for due := 0.; ; {
				due += rand.ExpFloat64() / rate //nolint:gosec // guards no secret
				if due >= p.seconds {
					return
				}
				select {
				case <-time.After(time.Until(start.Add(time.Duration(due * float64(time.Second))))):
				case <-ctx.Done():
					return
				}
				l.calls.Go(func() { l.request(e, l.result.phases[index][e.path], due >= p.judged) })
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// request makes a request.
func (l *load) request(e endpoint, o *outcome, counts bool) {
	status, err := l.get(e)
	if !counts {
		return
	}
	l.result.mu.Lock()
	defer l.result.mu.Unlock()
	o.requests++
	switch {
	case err != nil:
	case status == http.StatusOK:
		o.answered++
	default:
		o.refused++
	}
}

// get makes a request and returns the status of the answer. The error says that none came in time.
func (l *load) get(e endpoint) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), e.patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+e.path, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// close waits for the answers to all requests.
func (l *load) close() {
	l.calls.Wait()
	l.client.CloseIdleConnections()
}
