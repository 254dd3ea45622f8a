package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
)

// The show runs on virtual time, over connections in memory: what it finds does not depend
// on how busy the machine is.
func TestRuleKeepsAnOverloadedServiceUseful(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		require.NoError(t, run(t.Context(), &out, inMemory(), schedule(true)), out.String())
		assert.Contains(t, out.String(), "limit in flight")
		assert.Contains(t, out.String(), "requests of high priority answered in time")
		t.Log(out.String())
	})
}

func TestInterruptedShowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var out strings.Builder
		require.ErrorIs(t, run(ctx, &out, inMemory(), schedule(false)), context.DeadlineExceeded)
	})
}

func TestSummarySaysWhetherTheRuleHelped(t *testing.T) {
	of := func(goodput, high, low int) []second {
		s := second{
			answered: make([]time.Duration, goodput),
			served:   map[rule.Priority]int{rule.PriorityHigh: high, rule.PriorityLow: low},
			arrived:  map[rule.Priority]int{rule.PriorityHigh: 10, rule.PriorityNormal: 10, rule.PriorityLow: 10},
		}
		return []second{s, s}
	}
	p := plan{seconds: 2}
	var out strings.Builder
	require.NoError(t, summarize(&out, of(10, 1, 1), of(20, 10, 1), p))
	assert.Contains(t, out.String(), "100 %")
	require.ErrorContains(t, summarize(&out, of(10, 1, 1), of(14, 10, 1), p), "did not help")
	require.ErrorContains(t, summarize(&out, of(10, 1, 1), of(20, 5, 5), p), "least important")
	require.ErrorContains(t, summarize(&out, of(0, 0, 0), of(0, 0, 0), p), "did not help")
}

func TestPercentileIsTheLeastThatSoManyDoNotExceed(t *testing.T) {
	var list []time.Duration
	for i := 100; i > 0; i-- {
		list = append(list, time.Duration(i))
	}
	assert.Equal(t, time.Duration(50), percentile(list, 50))
	assert.Equal(t, time.Duration(99), percentile(list, 99))
	assert.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 1))
	assert.Zero(t, percentile(nil, 99))
}

// inMemory returns a network of connections in memory between addresses of this machine.
func inMemory() network {
	connections, closed := make(chan net.Conn), make(chan struct{})
	return network{
		listen: func() (net.Listener, error) {
			connections, closed = make(chan net.Conn), make(chan struct{})
			return &listener{connections: connections, closed: closed}, nil
		},
		dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			select {
			case connections <- local{server}:
				return client, nil
			case <-closed:
				return nil, net.ErrClosed
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

// listener accepts connections in memory.
type listener struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	select {
	case <-l.closed:
		return errors.New("closed twice")
	default:
		close(l.closed)
		return nil
	}
}

func (l *listener) Addr() net.Addr { return local{}.RemoteAddr() }

// local is a connection from this machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
