package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

// roleReplica is the argument of a process that is a server.
const roleReplica = "replica"

// reportEvery is how often data planes report here. Envoy does so every 5 s.
const reportEvery = time.Second

// replica serves quotas until the context ends, by a limit that it shares through the server at an
// address.
func replica(ctx context.Context, name, store string, out io.Writer) error {
	backend, err := redis.Connect(redis.Options{Addresses: []string{store}, App: "example"})
	if err != nil {
		return err
	}
	defer func() { _ = backend.Close() }()
	engine := core.New(core.Config{
		Logger: slog.New(slog.DiscardHandler), Fleet: fleet.Config{Backend: backend, Instance: name},
	})
	defer engine.Close()
	set, err := rules.Parse("orders.yaml", fmt.Appendf(nil, "flow: [{resource: orders, limit: %d, scope: fleet}]", limit))
	if err != nil {
		return err
	}
	if err := engine.Load(set); err != nil {
		return err
	}
	service := serve.NewRLQS(engine, serve.RLQSOptions{ReportInterval: reportEvery})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	quota.RegisterRateLimitQuotaServiceServer(server, service)
	fmt.Fprintln(out, listener.Addr())
	go func() {
		<-ctx.Done()
		service.Close()
		server.Stop()
	}()
	return server.Serve(listener)
}

// process is a server in a process of its own.
type process struct {
	address string
	run     *exec.Cmd
}

// startReplica starts a server and waits until it listens.
func startReplica(ctx context.Context, name, store string) (*process, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{run: exec.CommandContext(ctx, path, roleReplica, name, store)} //nolint:gosec // this program
	p.run.Stderr = os.Stderr
	output, err := p.run.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.run.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("%s did not start: %w", name, err)
	}
	p.address = strings.TrimSpace(line)
	return p, nil
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	_ = p.run.Process.Kill()
	_ = p.run.Wait()
}
