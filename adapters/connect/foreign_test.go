package penstockconnect_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

// directStream is a stream that comes from no connection, of either side.
type directStream struct {
	connect.StreamingHandlerConn
	connect.StreamingClientConn
}

func (directStream) Spec() connect.Spec {
	return connect.Spec{Procedure: watch, StreamType: connect.StreamTypeServer}
}

func (directStream) Peer() connect.Peer           { return connect.Peer{Protocol: connect.ProtocolConnect} }
func (directStream) RequestHeader() http.Header   { return http.Header{} }
func (directStream) RequestTrailer() http.Header  { return http.Header{} }
func (directStream) ResponseHeader() http.Header  { return http.Header{} }
func (directStream) ResponseTrailer() http.Header { return http.Header{} }
func (directStream) Send(any) error               { return nil }
func (directStream) Receive(any) error            { return nil }

func TestCallThatARuleFailsHoldsNothing(t *testing.T) {
	always := penstockconnect.Options{Fields: nethttp.Fields{Always: true}}
	for name, call := range map[string]func(t *testing.T, engine *core.Engine){
		"stream of a server": func(_ *testing.T, engine *core.Engine) {
			next := func(context.Context, connect.StreamingHandlerConn) error { return nil }
			_ = penstockconnect.ServerInterceptor(engine, penstockconnect.Options{}).WrapStreamingHandler(next)(t.Context(), directStream{})
		},
		"stream of a client": func(_ *testing.T, engine *core.Engine) {
			next := func(context.Context, connect.Spec) connect.StreamingClientConn { return directStream{} }
			stream := penstockconnect.ClientInterceptor(engine, penstockconnect.Options{}).WrapStreamingClient(next)(t.Context(), connect.Spec{})
			_ = stream.Send(nil)
		},
		"fields": func(_ *testing.T, engine *core.Engine) {
			next := func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) { return nil, nil }
			request := directRequest{connect.NewRequest(wrapperspb.String("a"))}
			_, _ = penstockconnect.ServerInterceptor(engine, always).WrapUnary(next)(t.Context(), request)
		},
	} {
		t.Run(name, func(t *testing.T) { adaptertest.RequireFailsAndHoldsNothing(t, call) })
	}
}

// With Fields.Always answers tell of the limits, whether the call succeeds or not.
func TestAnswersOfCallsThatPassTellOfTheLimits(t *testing.T) {
	shared := connect.NewError(connect.CodeNotFound, errors.New("no such order"))
	shared.Meta().Set("Own", "value")
	for _, w := range wires() {
		for _, result := range []error{nil, shared} {
			engine := newEngine(t, flow.Rule{Name: "orders", Resource: create, Limit: 9, Window: time.Minute},
				flow.Rule{Name: "watches", Resource: watch, Limit: 5, Window: time.Minute})
			options := penstockconnect.Options{Fields: nethttp.Fields{Always: true, ShowRules: true}}
			end := func(context.Context, http.Header) error { return result }
			url := serve(t, newHandler(end, connect.WithInterceptors(penstockconnect.ServerInterceptor(engine, options))))
			var header http.Header
			response, err := w.clientOf(t, url, create).CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("a")))
			if result == nil {
				require.NoError(t, err)
				header = response.Header()
			} else {
				header = metaOf(t, err)
				assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
				assert.ErrorContains(t, err, "no such order")
				assert.Equal(t, "value", header.Get("Own"))
			}
			stream, err := w.clientOf(t, url, watch).CallServerStream(t.Context(), connect.NewRequest(wrapperspb.String("a")))
			require.NoError(t, err)
			require.True(t, stream.Receive())
			if w.isGRPC() { // which has no such fields
				assert.Empty(t, header.Get("RateLimit"))
				assert.Empty(t, stream.ResponseHeader().Get("RateLimit"))
			} else {
				assert.Regexp(t, `^"orders";r=8(;t=\d+)?$`, header.Get("RateLimit"))
				assert.Equal(t, `"orders";q=9;w=60`, header.Get("RateLimit-Policy"))
				assert.Regexp(t, `^"watches";r=4(;t=\d+)?$`, stream.ResponseHeader().Get("RateLimit"))
			}
			require.NoError(t, stream.Close())
		}
	}
	assert.Equal(t, http.Header{"Own": {"value"}}, shared.Meta(), "the handler's own error is as it was")
}
