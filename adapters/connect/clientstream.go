package penstockconnect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
)

// errClosed is the error of a stream that its caller has closed.
var errClosed = errors.New("penstockconnect: the stream was closed before anything was sent")

// clientStream is a stream of a client. It enters its call before it sends anything, and
// exits it when it ends. Callers may send and receive at the same time.
type clientStream struct {
	connect.StreamingClientConn
	gate *gate
	ctx  context.Context

	entering sync.Once
	decided  chan struct{} // closed when it is decided whether the call passes; guards the fields below
	refused  error         // of a call that does not pass
	from     rpc.Caller
	guard    core.Guard
	sent     outgoing.Call
	forget   func() bool // stops the AfterFunc of the context

	exited sync.Once
	told   atomic.Bool // the throttle knows how it ended
}

// refusedStream returns a stream whose methods all return the error.
func refusedStream(conn connect.StreamingClientConn, err error) *clientStream {
	s := &clientStream{StreamingClientConn: conn, decided: make(chan struct{}), refused: err}
	s.entering.Do(func() { close(s.decided) })
	return s
}

// enter enters the call, once, when the header of the request is complete. It returns the
// error of a call that does not pass.
func (s *clientStream) enter() error {
	s.entering.Do(func() {
		defer close(s.decided)
		s.refused = rpc.ErrPanicked // unless an option returns
		s.refused = s.pass()
	})
	return s.refused
}

// pass asks the throttle and the rules.
func (s *clientStream) pass() (err error) {
	c := &call{Call: Call{Spec: s.Spec(), Peer: s.Peer(), Header: s.RequestHeader()}, ctx: s.ctx}
	p := s.gate.outboundPriority(s.ctx, c.Header)
	s.from = rpc.CallerOf(s.ctx)
	if s.sent, err = s.gate.begin(s.ctx, c, p); err != nil {
		return err
	}
	if err := s.gate.enter(s.ctx, &s.guard, c, p); err != nil {
		s.sent.End(outgoing.Answer{}) // it was not sent
		return err
	}
	if c.Spec.StreamType&connect.StreamTypeServer != 0 {
		rpc.Prepare(&s.guard, s.guard.MarkLongLived)
	}
	s.forget = context.AfterFunc(s.ctx, func() { s.exit(s.ctx.Err()) })
	return nil
}

// wait waits until it is decided whether the call passes. It returns the error of a call that
// does not, and that of the context if that ends first.
func (s *clientStream) wait() error {
	select {
	case <-s.decided:
		return s.refused
	default:
	}
	select {
	case <-s.decided:
		return s.refused
	case <-s.ctx.Done():
		return connect.NewError(connect.Code(codeOf(s.ctx.Err())), s.ctx.Err())
	}
}

// Send sends a message.
func (s *clientStream) Send(message any) error {
	if err := s.enter(); err != nil {
		return err
	}
	return s.endIfBroken(s.StreamingClientConn.Send(message))
}

// CloseRequest closes the sending side.
func (s *clientStream) CloseRequest() error {
	if err := s.enter(); err != nil {
		return err
	}
	return s.endIfBroken(s.StreamingClientConn.CloseRequest())
}

// Receive receives a message and ends the call if there is none left.
func (s *clientStream) Receive(message any) error {
	if err := s.wait(); err != nil {
		return err
	}
	err := s.StreamingClientConn.Receive(message)
	switch {
	case errors.Is(err, io.EOF):
		s.end(nil)
	case err != nil:
		s.end(err)
	default:
		s.tell(nil) // the server serves the call
	}
	return err
}

// ResponseHeader returns the header of the response, an empty one if there is none.
func (s *clientStream) ResponseHeader() http.Header {
	if s.wait() != nil {
		return http.Header{}
	}
	return s.StreamingClientConn.ResponseHeader()
}

// ResponseTrailer returns the trailer of the response, an empty one if there is none.
func (s *clientStream) ResponseTrailer() http.Header {
	if s.wait() != nil {
		return http.Header{}
	}
	return s.StreamingClientConn.ResponseTrailer()
}

// CloseResponse closes the receiving side, and ends the call: if the stream had not ended,
// its caller did not want the rest. A stream that has sent nothing sends nothing any more.
func (s *clientStream) CloseResponse() error {
	s.entering.Do(func() {
		s.refused = connect.NewError(connect.CodeCanceled, errClosed)
		close(s.decided)
	})
	if s.refused != nil {
		return nil //nolint:nilerr // Send or Receive returns it
	}
	defer s.end(context.Canceled)
	return s.StreamingClientConn.CloseResponse()
}

// endIfBroken ends the call if an error ends the stream. After io.EOF the error is still to
// be received.
func (s *clientStream) endIfBroken(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		s.end(err)
	}
	return err
}

// end exits the guard of a call that ended with err, unless it was exited before.
func (s *clientStream) end(err error) {
	s.forget()
	s.exit(err)
}

func (s *clientStream) exit(err error) {
	defer s.tell(err)
	s.exited.Do(func() {
		defer s.guard.Exit() // also if Failure panics
		s.gate.Mark(&s.guard, s.from, err)
	})
}

// tell tells the throttle, once, what the first message or the end of the stream says of its
// target.
func (s *clientStream) tell(err error) {
	if s.gate.throttles() && !s.told.Load() && !s.told.Swap(true) {
		s.sent.End(s.gate.answerOf(s.from, err))
	}
}
