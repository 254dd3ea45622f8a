package penstockgrpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/core"
)

// clientStream is a stream of a client that exits its guard when it ends.
//
// It never asks the stream for its context: that would keep grpc from retrying.
type clientStream struct {
	grpc.ClientStream
	gate     *gate
	from     caller
	oneReply bool // the first message received is the last

	guard  core.Guard
	exited sync.Once
	forget func() bool // stops waiting for the context's end
}

// open opens the stream.
func (s *clientStream) open(desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts []grpc.CallOption,
) error {
	s.forget = context.AfterFunc(s.from.ctx, func() { s.exit(status.FromContextError(s.from.ctx.Err()).Err()) })
	failure := errPanicked // unless streamer returns
	defer func() {
		if s.ClientStream == nil {
			s.end(failure)
		}
	}()
	stream, err := streamer(s.from.ctx, desc, conn, method, append(slices.Clip(opts), s.endOnClose(conn))...)
	if err != nil {
		failure = err
		return err
	}
	s.ClientStream = stream
	return nil
}

// endOnClose ends the call when its connection is closed, which is nothing that
// an abandoned stream would tell by itself.
func (s *clientStream) endOnClose(conn *grpc.ClientConn) grpc.CallOption {
	return grpc.OnFinish(func(err error) {
		// On a connection that is not closed this may be the end of one attempt
		// of several, if an interceptor further in makes them.
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
	case err != nil || s.oneReply:
		s.end(err)
	}
	return err
}

// SendMsg sends a message.
func (s *clientStream) SendMsg(m any) error { return s.endIfBroken(s.ClientStream.SendMsg(m)) }

// CloseSend closes the sending side.
func (s *clientStream) CloseSend() error { return s.endIfBroken(s.ClientStream.CloseSend()) }

// Header returns what the server sent ahead.
func (s *clientStream) Header() (metadata.MD, error) {
	header, err := s.ClientStream.Header()
	return header, s.endIfBroken(err)
}

// endIfBroken ends the call if an error says that the stream is no more. After
// io.EOF the outcome is still to be received.
func (s *clientStream) endIfBroken(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		s.end(err)
	}
	return err
}

// end exits the guard of a call that ended with err, if nothing else did.
func (s *clientStream) end(err error) {
	s.forget()
	s.exit(err)
}

func (s *clientStream) exit(err error) {
	s.exited.Do(func() {
		defer s.guard.Exit() // also if Failure panics
		s.gate.markFailure(&s.guard, s.from, err)
	})
}
