package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const roleGenerate = "generate"

// generatorSettings say what clients do.
type generatorSettings struct {
	Path string

	// Rate is how many requests come in a second, at random times, whether or not earlier
	// ones were answered. If it is 0, Clients make one request after the other.
	Rate    float64
	Clients int

	WarmUp, Duration time.Duration // the load lasts for both, the latter is measured
}

// generateProcess is the process of the clients. It prints the outcome.
func generateProcess(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(roleGenerate, flag.ContinueOnError)
	address := flags.String("address", "", "")
	text := flags.String("settings", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var s generatorSettings
	if err := json.Unmarshal([]byte(*text), &s); err != nil {
		return err
	}
	g := newGenerator(s, *address, dialFromMany)
	o, err := g.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(o)
}

// dialFromMany connects from one of many addresses of this machine, as many clients would:
// one address has not enough ports for clients that give up all the time. Such a client
// resets its connection.
func dialFromMany(ctx context.Context, network, address string) (net.Conn, error) {
	from := net.IPv4(127, 0, 1, byte(1+rand.IntN(250))) //nolint:gosec // guards no secret
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext(ctx, network, address)
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c, err
}

// generator makes requests. It speaks just as much HTTP as it takes, so that it needs a
// small part of the time that the server needs.
type generator struct {
	settings generatorSettings
	address  string
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
	request  []byte
	start    time.Time
	calls    sync.WaitGroup

	mu     sync.Mutex
	idle   []*connection // used last is used next
	record record
	lags   []float64 // seconds
}

func newGenerator(s generatorSettings, address string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *generator {
	return &generator{settings: s, address: address, dial: dial, request: requestOf(s.Path)}
}

func requestOf(path string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: service\r\n\r\n", path)
}

// run makes requests until the measurement is over.
func (g *generator) run(ctx context.Context) (outcome, error) {
	defer g.close()
	if err := g.connect(ctx); err != nil {
		return outcome{}, err
	}
	g.start = time.Now()
	end := g.settings.WarmUp + g.settings.Duration
	ended := make(chan error, 1)
	go func() {
		if g.settings.Rate > 0 {
			ended <- g.arrive(ctx, end)
			return
		}
		g.loop(end)
		ended <- nil
	}()
	generator, server, err := g.usage(ctx, g.settings.WarmUp)
	if err != nil {
		return outcome{}, err
	}
	generatorLater, serverLater, err := g.usage(ctx, end)
	if err != nil {
		return outcome{}, err
	}
	if err := <-ended; err != nil {
		return outcome{}, err
	}
	g.calls.Wait()
	o := g.record.outcome(g.settings.Duration)
	o.GeneratorCPU = (generatorLater - generator) / g.settings.Duration.Seconds()
	o.ServerCPU = (serverLater - server) / g.settings.Duration.Seconds()
	o.Lag = percentile(g.lags, 99)
	return o, nil
}

// connections is how many connections there are before the first request, as of clients
// that have been there before.
const connections = 200

func (g *generator) connect(ctx context.Context) error {
	for range connections {
		c, err := g.dial(ctx, "tcp", g.address)
		if err != nil {
			return err
		}
		g.idle = append(g.idle, newConnection(c))
	}
	return nil
}

// usage returns the processor time that this process and the server have used at a time
// after the start, in seconds.
func (g *generator) usage(ctx context.Context, at time.Duration) (generator, server float64, err error) {
	time.Sleep(time.Until(g.start.Add(at)))
	generator = processorTime().Seconds()
	raw, err := g.dial(ctx, "tcp", g.address)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = raw.Close() }()
	_, body, err := newConnection(raw).exchange(requestOf(pathCPU), time.Now().Add(10*time.Second))
	if err != nil {
		return 0, 0, fmt.Errorf("asking the server for its processor time: %w", err)
	}
	server, err = strconv.ParseFloat(string(body), 64)
	return generator, server, err
}

// arrive makes requests at random times.
func (g *generator) arrive(ctx context.Context, until time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due := time.Duration(0); due < until; due += time.Duration(rand.ExpFloat64() / g.settings.Rate * float64(time.Second)) { //nolint:gosec // guards no secret
		at := g.start.Add(due)
		if wait := time.Until(at); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		g.calls.Go(func() { g.call(at) })
	}
	return nil
}

// loop has clients make one request after the other.
func (g *generator) loop(until time.Duration) {
	var clients sync.WaitGroup
	for range g.settings.Clients {
		clients.Go(func() {
			for time.Since(g.start) < until {
				g.call(time.Now())
			}
		})
	}
	clients.Wait()
}

// call makes a request that was due at a time: that is when the client began to wait.
func (g *generator) call(due time.Time) {
	sent := time.Now()
	status, err := g.get(due.Add(patience))
	took := time.Since(due)
	if measured := due.Sub(g.start) - g.settings.WarmUp; measured < 0 || measured >= g.settings.Duration {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.record.add(took.Seconds(), err == nil && status == 503, err == nil && status == 200 && took <= patience)
	g.lags = append(g.lags, sent.Sub(due).Seconds())
}

// get makes a request and returns the status of the answer. A client that gives up closes
// its connection.
func (g *generator) get(deadline time.Time) (status int, err error) {
	c, err := g.connection(deadline)
	if err != nil {
		return 0, err
	}
	status, _, err = c.exchange(g.request, deadline)
	if err != nil {
		_ = c.Close()
		return 0, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = append(g.idle, c)
	return status, nil
}

// connection returns a connection that no other request uses.
func (g *generator) connection(deadline time.Time) (*connection, error) {
	g.mu.Lock()
	if last := len(g.idle) - 1; last >= 0 {
		c := g.idle[last]
		g.idle = g.idle[:last]
		g.mu.Unlock()
		return c, nil
	}
	g.mu.Unlock()
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	raw, err := g.dial(ctx, "tcp", g.address)
	if err != nil {
		return nil, err
	}
	return newConnection(raw), nil
}

func (g *generator) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.idle {
		_ = c.Close()
	}
	g.idle = nil
}

// connection is an HTTP/1.1 connection.
type connection struct {
	net.Conn
	reader *bufio.Reader
}

func newConnection(c net.Conn) *connection { return &connection{c, bufio.NewReader(c)} }

// exchange sends a request and reads the answer.
func (c *connection) exchange(request []byte, deadline time.Time) (status int, body []byte, err error) {
	if err := c.SetDeadline(deadline); err != nil {
		return 0, nil, err
	}
	if _, err := c.Write(request); err != nil {
		return 0, nil, err
	}
	return readAnswer(c.reader)
}

// readAnswer reads an answer whose length is given.
func readAnswer(r *bufio.Reader) (status int, body []byte, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, nil, err
	}
	fields := strings.Fields(string(line))
	if len(fields) < 2 {
		return 0, nil, fmt.Errorf("no answer of HTTP: %q", line)
	}
	if status, err = strconv.Atoi(fields[1]); err != nil {
		return 0, nil, err
	}
	length := -1
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, nil, err
			}
		}
	}
	if length < 0 {
		return 0, nil, errors.New("an answer without Content-Length")
	}
	body = make([]byte, length)
	_, err = io.ReadFull(r, body)
	return status, body, err
}
