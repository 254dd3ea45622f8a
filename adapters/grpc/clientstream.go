package penstockgrpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
)

// clientStream is a stream of a client that exits its guard when it ends.
//
// It never calls Context of the wrapped stream: that would prevent grpc from retrying.
type clientStream struct {
	grpc.ClientStream
	gate     *gate
	from     rpc.Caller
	oneReply bool // the server sends one message only

	guard  core.Guard
	exited sync.Once
	forget func() bool // stops the AfterFunc of the context

	call outgoing.Call
	told atomic.Bool // how it ended
}

// open opens the stream.
func (s *clientStream) open(desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts []grpc.CallOption,
) error {
	s.forget = context.AfterFunc(s.from.Context(), func() { s.exit(status.FromContextError(s.from.Context().Err()).Err(), nil) })
	failure := rpc.ErrPanicked // unless streamer returns
	defer func() {
		if s.ClientStream == nil {
			s.end(failure)
		}
	}()
	stream, err := streamer(s.from.Context(), desc, conn, method, append(slices.Clip(opts), s.endOnClose(conn))...)
	if err != nil {
		failure = err
		return err
	}
	s.ClientStream = stream
	return nil
}

// endOnClose ends the call when its connection is closed, which an abandoned stream
// would not report.
func (s *clientStream) endOnClose(conn *grpc.ClientConn) grpc.CallOption {
	return grpc.OnFinish(func(err error) {
		// On an open connection this may be the end of one of several attempts
		// of an inner interceptor.
		if conn.GetState() == connectivity.Shutdown {
			s.end(err)
		}
	})
}

// RecvMsg receives a message and ends the call if it was the last.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case errors.Is(err, io.EOF):
		s.end(nil)
	case err != nil:
		s.endWith(err, s.Trailer())
	case s.oneReply:
		s.end(nil)
	default:
		s.tell(nil, nil) // the server serves the call
	}
	return err
}

// SendMsg sends a message.
func (s *clientStream) SendMsg(m any) error { return s.endIfBroken(s.ClientStream.SendMsg(m)) }

// CloseSend closes the sending side.
func (s *clientStream) CloseSend() error { return s.endIfBroken(s.ClientStream.CloseSend()) }

// Header returns the header metadata of the server.
func (s *clientStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	return header, s.endIfBroken(err)
}

// endIfBroken ends the call if an error ends the stream. After io.EOF the status is
// still to be received.
func (s *clientStream) endIfBroken(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		s.end(err)
	}
	return err
}

// end exits the guard of a call that ended with err, unless it was exited before.
func (s *clientStream) end(err error) { s.endWith(err, nil) }

// endWith ends a call for which the server has sent a trailer.
func (s *clientStream) endWith(err error, trailer metadata.MD) {
	s.forget()
	s.exit(err, trailer)
}

func (s *clientStream) exit(err error, trailer metadata.MD) {
	defer s.tell(err, trailer)
	s.exited.Do(func() {
		defer s.guard.Exit() // also if Failure panics
		s.gate.Mark(&s.guard, s.from, err)
	})
}

// tell tells the throttle, once, what the first message or the end of the stream says of its
// target.
func (s *clientStream) tell(err error, trailer metadata.MD) {
	if s.gate.throttles() && !s.told.Load() && !s.told.Swap(true) {
		s.call.End(s.gate.answerOf(s.from, err, trailer))
	}
}
