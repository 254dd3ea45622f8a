package penstockconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockconnect "github.com/penstock-go/penstock/adapters/connect"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestCodesThatBlameTheServerAreFailures(t *testing.T) {
	blames := map[connect.Code]bool{
		connect.CodeUnknown: true, connect.CodeDeadlineExceeded: true, connect.CodeUnimplemented: true,
		connect.CodeInternal: true, connect.CodeUnavailable: true, connect.CodeDataLoss: true,
	}
	for code := connect.CodeCanceled; code <= connect.CodeUnauthenticated; code++ {
		err := connect.NewError(code, errors.New("it ended so"))
		assert.Equal(t, blames[code], penstockconnect.IsFailure(err), code)
		assert.Equal(t, blames[code], penstockconnect.IsFailure(fmt.Errorf("wrapped: %w", err)), code)
	}
	assert.True(t, penstockconnect.IsFailure(errors.New("plain")))
	assert.True(t, penstockconnect.IsFailure(connect.NewError(99, nil)))
	assert.True(t, penstockconnect.IsFailure(context.DeadlineExceeded))
	assert.False(t, penstockconnect.IsFailure(context.Canceled))
	assert.False(t, penstockconnect.IsFailure(connect.NewNotModifiedError(nil)))
	assert.False(t, penstockconnect.IsFailure(&core.BlockError{}))
}

func TestPanicIsAFailureWhereverItIsRecovered(t *testing.T) {
	recovered := connect.WithRecover(func(context.Context, connect.Spec, http.Header, any) error {
		return connect.NewError(connect.CodeDataLoss, errors.New("recovered"))
	})
	for _, w := range wires() {
		for _, s := range shapes() {
			if s.needsHTTP2 && !w.http2 {
				continue
			}
			for name, order := range map[string]func(connect.HandlerOption) []connect.HandlerOption{
				"recovered inside": func(guard connect.HandlerOption) []connect.HandlerOption {
					return []connect.HandlerOption{guard, recovered}
				},
				"not recovered": func(guard connect.HandlerOption) []connect.HandlerOption {
					return []connect.HandlerOption{guard}
				},
			} {
				t.Run(w.name+", "+string(s.name)+", "+name, func(t *testing.T) {
					p := new(adaptertest.Probe)
					interceptor := penstockconnect.ServerInterceptor(p.NewEngine(t), penstockconnect.Options{})
					end := func(context.Context, http.Header) error { panic("on purpose") }
					url := serve(t, newHandler(end, order(connect.WithInterceptors(interceptor))...))
					err := s.call(t.Context(), w.clientOf(t, url, s.procedure))
					require.Error(t, err)
					if name != "not recovered" {
						assert.Equal(t, connect.CodeDataLoss, connect.CodeOf(err))
					}
					p.RequireOutcome(t, adaptertest.Failed)
				})
			}
		}
	}
}

func TestStreamIsOneCallUntilItsEnd(t *testing.T) {
	for _, at := range []adaptertest.Side{adaptertest.AtServer, adaptertest.AtClient} {
		for _, w := range wires() {
			if !w.http2 {
				continue
			}
			t.Run(string(at)+", "+w.name, func(t *testing.T) {
				engine := newEngine(t)
				client := guard(t, at, w, chat, engine, penstockconnect.Options{}, succeed)
				stream := client.CallBidiStream(t.Context())
				for range 3 {
					require.NoError(t, stream.Send(wrapperspb.String("a")))
					_, err := stream.Receive()
					require.NoError(t, err)
				}
				counted := totals(engine, chat)
				assert.EqualValues(t, 1, counted.Passed)
				assert.EqualValues(t, 1, counted.InFlight)
				require.NoError(t, stream.CloseRequest())
				_, err := stream.Receive()
				require.Error(t, err)
				counted = adaptertest.RequireEnded(t, engine, chat, 1)
				assert.EqualValues(t, 1, counted.Passed)
				require.NoError(t, stream.CloseResponse())
			})
		}
	}
}

func TestStreamThatItsCallerLeavesCountsNeitherWay(t *testing.T) {
	for name, leave := range map[string]func(*connect.BidiStreamForClient[text, text], context.CancelFunc){
		"by the context": func(_ *connect.BidiStreamForClient[text, text], cancel context.CancelFunc) { cancel() },
		"by closing it": func(s *connect.BidiStreamForClient[text, text], _ context.CancelFunc) {
			_ = s.CloseRequest() // CloseResponse may wait for the end
			_ = s.CloseResponse()
		},
	} {
		for _, w := range wires() {
			if !w.http2 {
				continue
			}
			t.Run(name+", "+w.name, func(t *testing.T) {
				p := new(adaptertest.Probe)
				client := guard(t, adaptertest.AtClient, w, chat, p.NewEngine(t), penstockconnect.Options{}, succeed)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream := client.CallBidiStream(ctx)
				require.NoError(t, stream.Send(wrapperspb.String("a")))
				_, err := stream.Receive()
				require.NoError(t, err)
				leave(stream, cancel)
				p.RequireOutcome(t, adaptertest.Ignored)
			})
		}
	}
}

func TestStreamThatSendsNothingIsNoCall(t *testing.T) {
	for _, w := range wires() {
		engine := newEngine(t)
		client := guard(t, adaptertest.AtClient, w, chat, engine, penstockconnect.Options{}, succeed)
		stream := client.CallBidiStream(t.Context())
		require.NoError(t, stream.CloseResponse())
		err := stream.Send(wrapperspb.String("a"))
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(err))
		_, err = stream.Receive()
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(err))
		assert.Empty(t, stream.ResponseHeader())
		assert.Empty(t, stream.ResponseTrailer())
		assert.Zero(t, totals(engine, chat).Passed)
	}
}

func TestRefusedStreamReturnsItsRefusalEverywhere(t *testing.T) {
	for _, w := range wires() {
		engine := newEngine(t, flow.Rule{Name: "orders", Resource: chat, Limit: 0})
		client := guard(t, adaptertest.AtClient, w, chat, engine, penstockconnect.Options{}, succeed)
		stream := client.CallBidiStream(t.Context())
		received := make(chan error, 1)
		go func() { // waits until it is decided
			_, err := stream.Receive()
			received <- err
		}()
		for _, err := range []error{stream.Send(wrapperspb.String("a")), stream.CloseRequest(), <-received} {
			require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
			require.ErrorIs(t, err, core.ErrBlocked)
		}
		assert.Empty(t, stream.ResponseHeader())
		assert.Empty(t, stream.ResponseTrailer())
		require.NoError(t, stream.CloseResponse())
		assert.EqualValues(t, 1, totals(engine, chat).Blocked)
	}
}

func TestReceiveBeforeAnythingIsSentEndsWithTheContext(t *testing.T) {
	engine := newEngine(t)
	client := guard(t, adaptertest.AtClient, wires()[1], chat, engine, penstockconnect.Options{}, succeed)
	ctx, cancel := context.WithCancel(t.Context())
	stream := client.CallBidiStream(ctx)
	cancel()
	_, err := stream.Receive()
	require.Equal(t, connect.CodeCanceled, connect.CodeOf(err))
	assert.Zero(t, totals(engine, chat).Passed)
}
