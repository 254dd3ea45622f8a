package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// store is what the servers share their limit through.
type store struct {
	about, address string
	stop           func()
}

// startStore starts a real server if there is a program on the PATH, else a stand-in in this process.
func startStore(ctx context.Context) (*store, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return startServer(ctx, path)
		}
	}
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return &store{"a stand-in in this process, as neither redis-server nor valkey-server is on the PATH", server.Addr(), server.Close}, nil
}

func startServer(ctx context.Context, path string) (*store, error) {
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = free.Close()
	run := exec.CommandContext(ctx, path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no") //nolint:gosec // of the PATH
	if err := run.Start(); err != nil {
		return nil, err
	}
	s := &store{filepath.Base(path), address, func() { _ = run.Process.Kill(); _ = run.Wait() }}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address); err == nil {
			return s, conn.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("%s does not listen", path)
}
