package main

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/rule"
)

// patience is how long clients wait for an answer.
const patience = 200 * time.Millisecond

// share is the share of the requests that have a priority.
type share struct {
	priority rule.Priority
	share    float64
}

// shares are the priorities of the load, the most important first.
func shares() []share {
	return []share{{rule.PriorityHigh, 0.2}, {rule.PriorityNormal, 0.3}, {rule.PriorityLow, 0.5}}
}

// second is what became of the requests that ended in a second.
type second struct {
	answered []time.Duration // in time: how long that took
	refused  int
	gaveUp   int
	served   map[rule.Priority]int // of the answered ones
	arrived  map[rule.Priority]int // requests that came in this second
	state    *ruleState            // at the end of it; nil without a rule
}

// load makes requests at random times, whether or not earlier ones were answered.
type load struct {
	url    string
	client *http.Client
	start  time.Time
	calls  sync.WaitGroup

	mu      sync.Mutex
	seconds []second
	shed    map[string]float64 // by priority, up to the second that was noted last
}

func newLoad(network network, address string) *load {
	return &load{
		url:   "http://" + address + "/orders",
		start: time.Now(),
		client: &http.Client{Transport: &http.Transport{
			DialContext: network.dial, MaxIdleConnsPerHost: 1000, MaxIdleConns: 1000,
		}},
	}
}

// run makes requests until the plan is over or ctx ends. A machine that was busy elsewhere
// is caught up with.
func (l *load) run(ctx context.Context, p plan) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Duration(0)
	for due < time.Duration(p.seconds)*time.Second {
		timer.Reset(time.Until(l.start.Add(due)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		l.request(draw())
		rate := normal * capacity
		if due >= time.Duration(p.overloaded)*time.Second {
			rate = overload * capacity
		}
		due += time.Duration(rand.ExpFloat64() / rate * float64(time.Second)) //nolint:gosec // guards no secret
	}
}

// draw returns the priority of a request.
func draw() rule.Priority {
	all := shares()
	number := rand.Float64() //nolint:gosec // guards no secret
	for _, s := range all[1:] {
		if number -= s.share; number < 0 {
			return s.priority
		}
	}
	return all[0].priority
}

// request makes a request in a goroutine of its own.
func (l *load) request(p rule.Priority) {
	came := time.Now()
	l.record(came, func(s *second) { s.arrived[p]++ })
	l.calls.Go(func() {
		status, err := l.get(p)
		now := time.Now()
		l.record(now, func(s *second) {
			switch {
			case err != nil, now.Sub(came) > patience:
				s.gaveUp++
			case status == http.StatusOK:
				s.answered = append(s.answered, now.Sub(came))
				s.served[p]++
			default:
				s.refused++
			}
		})
	})
}

// get makes a request and returns the status of the answer. The error says that none came
// in time.
func (l *load) get(p rule.Priority) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set(priority.Field, p.String())
	response, err := l.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// record changes what is known of a second.
func (l *load) record(at time.Time, change func(*second)) {
	i := int(at.Sub(l.start) / time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.seconds) <= i {
		l.seconds = append(l.seconds, second{served: make(map[rule.Priority]int), arrived: make(map[rule.Priority]int)})
	}
	change(&l.seconds[i])
}

// note keeps what the rule showed at the end of a second, and what it shed in that second.
func (l *load) note(i int, state *ruleState) {
	if state != nil {
		before := l.shed
		l.shed = maps.Clone(state.shed)
		for p, count := range before {
			state.shed[p] -= count
		}
	}
	l.record(l.start.Add(time.Duration(i)*time.Second), func(s *second) { s.state = state })
}

// second returns what is known of a second.
func (l *load) second(i int) second {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seconds[i]
}

// all returns what is known of all seconds.
func (l *load) all() []second {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seconds
}

// close waits for the answers to all requests.
func (l *load) close() {
	l.calls.Wait()
	l.client.CloseIdleConnections()
}
