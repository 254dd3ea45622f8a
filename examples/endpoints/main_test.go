package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The show runs on virtual time, over connections in memory: what it finds does not depend on how
// busy the machine is. It depends on chance, so what it finds is only logged.
func TestShowTellsOfEachEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		if err := run(t.Context(), &out, imitating(inMemory()), phases(0.2)); err != nil {
			t.Log(err)
		}
		for _, e := range endpoints() {
			assert.Contains(t, out.String(), e.path)
		}
		t.Log(out.String())
	})
}

func TestInterruptedShowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out strings.Builder
		require.ErrorIs(t, run(ctx, &out, imitating(inMemory()), phases(1)), context.Canceled)
	})
}

func inMemory() network {
	connections, closed := make(chan net.Conn), make(chan struct{})
	return network{
		listen: func() (net.Listener, error) {
			connections, closed = make(chan net.Conn), make(chan struct{})
			return &listener{connections, closed}, nil
		},
		dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			select {
			case connections <- server:
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

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
