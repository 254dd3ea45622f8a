package penstockgrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
)

// directStream is a stream of a server that comes from no connection.
type directStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s directStream) Context() context.Context { return s.ctx }

func TestCallThatARuleFailsHoldsNothing(t *testing.T) {
	load := penstockgrpc.Options{ReportLoad: true}
	for name, call := range map[string]func(t *testing.T, engine *core.Engine){
		"stream of a server": func(t *testing.T, engine *core.Engine) {
			info := &grpc.StreamServerInfo{FullMethod: download, IsServerStream: true}
			_ = penstockgrpc.StreamServerInterceptor(engine, penstockgrpc.Options{})(nil, directStream{ctx: t.Context()}, info,
				func(any, grpc.ServerStream) error { return nil })
		},
		"stream of a client": func(t *testing.T, engine *core.Engine) {
			streamer := func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, nil
			}
			desc := &grpc.StreamDesc{ServerStreams: true}
			_, _ = penstockgrpc.StreamClientInterceptor(engine, penstockgrpc.Options{})(t.Context(), desc, nil, download, streamer)
		},
		"load": func(t *testing.T, engine *core.Engine) {
			info := &grpc.UnaryServerInfo{FullMethod: "/s/m"}
			intercept := penstockgrpc.UnaryServerInterceptor(engine, load)
			for { // the load is measured once time has passed
				_, _ = intercept(t.Context(), nil, info, func(context.Context, any) (any, error) { return nil, nil })
			}
		},
	} {
		t.Run(name, func(t *testing.T) { adaptertest.RequireFailsAndHoldsNothing(t, call) })
	}
}
