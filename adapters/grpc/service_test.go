package penstockgrpc_test

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	testpb "google.golang.org/grpc/interop/grpc_testing"
)

// service has a method of each shape. All of them call finish in the end,
// and return what it returns.
type service struct {
	testpb.UnimplementedTestServiceServer
	finish func(context.Context) error
}

func succeed(context.Context) error { return nil }

func (s service) UnaryCall(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return &testpb.SimpleResponse{}, s.finish(ctx)
}

// StreamingOutputCall sends two replies.
func (s service) StreamingOutputCall(
	_ *testpb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[testpb.StreamingOutputCallResponse],
) error {
	for range 2 {
		if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return s.finish(stream.Context())
}

// StreamingInputCall receives all requests.
func (s service) StreamingInputCall(
	stream grpc.ClientStreamingServer[testpb.StreamingInputCallRequest, testpb.StreamingInputCallResponse],
) error {
	for {
		switch _, err := stream.Recv(); {
		case errors.Is(err, io.EOF):
			if err := s.finish(stream.Context()); err != nil {
				return err
			}
			return stream.SendAndClose(&testpb.StreamingInputCallResponse{})
		case err != nil:
			return err
		}
	}
}

// FullDuplexCall answers each request with a reply.
func (s service) FullDuplexCall(
	stream grpc.BidiStreamingServer[testpb.StreamingOutputCallRequest, testpb.StreamingOutputCallResponse],
) error {
	for {
		switch _, err := stream.Recv(); {
		case errors.Is(err, io.EOF):
			return s.finish(stream.Context())
		case err != nil:
			return err
		}
		if err := stream.Send(&testpb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// shape is a method and a call of it from beginning to end.
type shape struct {
	name   string
	method string
	call   func(context.Context, testpb.TestServiceClient) error
}

func shapes() []shape {
	return []shape{
		{"unary", testpb.TestService_UnaryCall_FullMethodName, callUnary},
		{"server stream", testpb.TestService_StreamingOutputCall_FullMethodName, callServerStream},
		{"client stream", testpb.TestService_StreamingInputCall_FullMethodName, callClientStream},
		{"bidirectional stream", testpb.TestService_FullDuplexCall_FullMethodName, callBidirectional},
	}
}

func callUnary(ctx context.Context, client testpb.TestServiceClient) error {
	_, err := client.UnaryCall(ctx, &testpb.SimpleRequest{})
	return err
}

func callServerStream(ctx context.Context, client testpb.TestServiceClient) error {
	stream, err := client.StreamingOutputCall(ctx, &testpb.StreamingOutputCallRequest{})
	if err != nil {
		return err
	}
	return drain(stream)
}

func callClientStream(ctx context.Context, client testpb.TestServiceClient) error {
	stream, err := client.StreamingInputCall(ctx)
	if err != nil {
		return err
	}
	for range 2 {
		if err := stream.Send(&testpb.StreamingInputCallRequest{}); err != nil {
			break // CloseAndRecv tells why
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

func callBidirectional(ctx context.Context, client testpb.TestServiceClient) error {
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&testpb.StreamingOutputCallRequest{}); err == nil {
		_, _ = stream.Recv()
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return drain(stream)
}

type replies interface {
	Recv() (*testpb.StreamingOutputCallResponse, error)
}

// drain receives until the stream ends and returns how it did.
func drain(stream replies) error {
	for {
		switch _, err := stream.Recv(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
