package penstockconnect_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// The procedures of the service.
const (
	create = "/shop.Orders/Create" // unary
	watch  = "/shop.Orders/Watch"  // a stream of the server
	upload = "/shop.Orders/Upload" // a stream of the client
	chat   = "/shop.Orders/Chat"   // a stream of both
)

type text = wrapperspb.StringValue

// finish is what a handler ends with, after it has received and before it replies.
type finish func(ctx context.Context, header http.Header) error

func succeed(context.Context, http.Header) error { return nil }

// newHandler returns the service.
func newHandler(end finish, opts ...connect.HandlerOption) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(create, connect.NewUnaryHandler(create,
		func(ctx context.Context, r *connect.Request[text]) (*connect.Response[text], error) {
			return connect.NewResponse(r.Msg), end(ctx, r.Header())
		}, opts...))
	mux.Handle(watch, connect.NewServerStreamHandler(watch,
		func(ctx context.Context, r *connect.Request[text], stream *connect.ServerStream[text]) error {
			for range 2 {
				if err := stream.Send(r.Msg); err != nil {
					return err
				}
			}
			return end(ctx, r.Header())
		}, opts...))
	mux.Handle(upload, connect.NewClientStreamHandler(upload,
		func(ctx context.Context, stream *connect.ClientStream[text]) (*connect.Response[text], error) {
			for stream.Receive() { // all of them
			}
			if err := stream.Err(); err != nil {
				return nil, err
			}
			return connect.NewResponse(wrapperspb.String("done")), end(ctx, stream.RequestHeader())
		}, opts...))
	mux.Handle(chat, connect.NewBidiStreamHandler(chat,
		func(ctx context.Context, stream *connect.BidiStream[text, text]) error {
			for {
				m, err := stream.Receive()
				if errors.Is(err, io.EOF) {
					return end(ctx, stream.RequestHeader())
				}
				if err != nil {
					return err
				}
				if err := stream.Send(m); err != nil {
					return err
				}
			}
		}, opts...))
	return mux
}

// serve starts a server for HTTP/1.1 and for HTTP/2 without TLS, and returns its URL.
func serve(t testing.TB, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{
		Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	return "http://" + listener.Addr().String()
}

// wire is a protocol and the version of HTTP that carries it.
type wire struct {
	name     string
	protocol string
	http2    bool
	options  []connect.ClientOption
}

func wires() []wire {
	return []wire{
		{"Connect over HTTP/1.1", connect.ProtocolConnect, false, nil},
		{"Connect over HTTP/2", connect.ProtocolConnect, true, nil},
		{"gRPC over HTTP/2", connect.ProtocolGRPC, true, []connect.ClientOption{connect.WithGRPC()}},
		{"gRPC-Web over HTTP/1.1", connect.ProtocolGRPCWeb, false, []connect.ClientOption{connect.WithGRPCWeb()}},
		{"gRPC-Web over HTTP/2", connect.ProtocolGRPCWeb, true, []connect.ClientOption{connect.WithGRPCWeb()}},
	}
}

func (w wire) isGRPC() bool { return w.protocol != connect.ProtocolConnect }

// httpClient returns a client of HTTP.
func (w wire) httpClient(t testing.TB) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!w.http2)
	transport.Protocols.SetUnencryptedHTTP2(w.http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// clientOf returns a client of a procedure.
func (w wire) clientOf(t testing.TB, url, procedure string, options ...connect.ClientOption) *connect.Client[text, text] {
	t.Helper()
	return connect.NewClient[text, text](w.httpClient(t), url+procedure, append(options, w.options...)...)
}

// shape is a procedure with what calls it from the first message to the end.
type shape struct {
	name       adaptertest.Shape
	procedure  string
	needsHTTP2 bool
	call       func(ctx context.Context, client *connect.Client[text, text]) error
}

func shapes() []shape {
	return []shape{
		{adaptertest.Unary, create, false, callUnary},
		{adaptertest.ServerStream, watch, false, callServerStream},
		{adaptertest.ClientStream, upload, false, callClientStream},
		{adaptertest.Bidi, chat, true, callBidiStream},
	}
}

func callUnary(ctx context.Context, client *connect.Client[text, text]) error {
	_, err := client.CallUnary(ctx, connect.NewRequest(wrapperspb.String("a")))
	return err
}

func callServerStream(ctx context.Context, client *connect.Client[text, text]) error {
	stream, err := client.CallServerStream(ctx, connect.NewRequest(wrapperspb.String("a")))
	if err != nil {
		return err
	}
	for stream.Receive() { // all of them
	}
	return errors.Join(stream.Err(), stream.Close())
}

func callClientStream(ctx context.Context, client *connect.Client[text, text]) error {
	stream := client.CallClientStream(ctx)
	for range 2 {
		if err := stream.Send(wrapperspb.String("a")); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	_, err := stream.CloseAndReceive()
	return err
}

func callBidiStream(ctx context.Context, client *connect.Client[text, text]) error {
	stream := client.CallBidiStream(ctx)
	var err error
	for range 2 {
		if err = stream.Send(wrapperspb.String("a")); err != nil {
			break
		}
		if _, err = stream.Receive(); err != nil {
			break
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = stream.CloseRequest()
	}
	if err == nil {
		if _, err = stream.Receive(); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return errors.Join(err, stream.CloseResponse())
}

// everywhere runs a test for each side, each wire and each shape of procedure.
func everywhere(t *testing.T, test func(t *testing.T, at adaptertest.Side, w wire, s shape)) {
	for _, at := range []adaptertest.Side{adaptertest.AtServer, adaptertest.AtClient} {
		for _, w := range wires() {
			for _, s := range shapes() {
				if s.needsHTTP2 && !w.http2 {
					continue
				}
				t.Run(string(at)+", "+w.name+", "+string(s.name), func(t *testing.T) { test(t, at, w, s) })
			}
		}
	}
}

// guard returns a client of a procedure, guarded at one side.
func guard(t testing.TB, at adaptertest.Side, w wire, procedure string, engine *core.Engine, options penstockconnect.Options, end finish,
) *connect.Client[text, text] {
	t.Helper()
	if at == adaptertest.AtServer {
		url := serve(t, newHandler(end, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, options))))
		return w.clientOf(t, url, procedure)
	}
	return w.clientOf(t, serve(t, newHandler(end)), procedure,
		connect.WithInterceptors(penstockconnect.ClientInterceptor(engine, options)))
}

func newEngine(t testing.TB, limits ...flow.Rule) *core.Engine {
	t.Helper()
	engine, _ := adaptertest.NewEngine(t, rules.Set{Flow: limits})
	return engine
}

// totals returns what the engine has counted of a resource.
func totals(engine *core.Engine, resource string) stat.Totals {
	return engine.Resource(resource).Snapshot().Totals
}
