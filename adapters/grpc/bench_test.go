package penstockgrpc_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/flow"
)

// BenchmarkUnaryServerInterceptor measures what the guard adds to a call.
func BenchmarkUnaryServerInterceptor(b *testing.B) {
	engine := newEngine(b, flow.Rule{Resource: "/s/Open", Limit: 1e9}, flow.Rule{Resource: "/s/Closed", Limit: 0})
	intercept := penstockgrpc.UnaryServerInterceptor(engine, penstockgrpc.Options{})
	handler := func(context.Context, any) (any, error) { return nil, nil }
	for name, method := range map[string]string{"no rule": "/s/Free", "passed": "/s/Open", "refused": "/s/Closed"} {
		info := &grpc.UnaryServerInfo{FullMethod: method}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = intercept(b.Context(), nil, info, handler)
			}
		})
	}
}

// BenchmarkUnaryClientInterceptor measures what the guard adds to a call.
func BenchmarkUnaryClientInterceptor(b *testing.B) {
	intercept := penstockgrpc.UnaryClientInterceptor(newEngine(b), penstockgrpc.Options{})
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = intercept(b.Context(), "/s/Free", nil, nil, nil, invoke)
	}
}

// BenchmarkStatus measures what it costs to tell a caller of a refusal.
func BenchmarkStatus(b *testing.B) {
	engine := newEngine(b, flow.Rule{Resource: "/s/Closed", Limit: 0})
	intercept := penstockgrpc.UnaryServerInterceptor(engine, penstockgrpc.Options{})
	info := &grpc.UnaryServerInfo{FullMethod: "/s/Closed"}
	b.ReportAllocs()
	for b.Loop() {
		_, err := intercept(b.Context(), nil, info, nil)
		status.Convert(err)
	}
}

// BenchmarkAttributes shows what it costs that a rule looks at an attribute, beside a
// rule that looks at one which calls do not have.
func BenchmarkAttributes(b *testing.B) {
	handler := func(context.Context, any) (any, error) { return nil, nil }
	for name, key := range map[string]string{"none": "user", "ip": "ip", "method": "method", "metadata": "metadata:tenant"} {
		b.Run(name, func(b *testing.B) {
			p := &adaptertest.AttributeReader{Key: key}
			intercept := penstockgrpc.UnaryServerInterceptor(p.NewEngine(b), penstockgrpc.Options{})
			from := &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}}
			ctx := called(b.Context(), from, metadata.Pairs("tenant", "a"))
			info := &grpc.UnaryServerInfo{FullMethod: "/s/M"}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = intercept(ctx, nil, info, handler)
			}
		})
	}
}
