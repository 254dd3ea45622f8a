package main

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// inventory is a small gRPC service: Reserve takes the name of an article and
// returns the number of the reservation. It records when it is called.
type inventory struct {
	mu     sync.Mutex
	called []time.Time
}

func (i *inventory) Reserve(_ context.Context, _ *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.called = append(i.called, time.Now())
	return wrapperspb.Int64(int64(len(i.called))), nil
}

// gaps returns the times between the calls.
func (i *inventory) gaps() []time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	gaps := make([]time.Duration, 0, len(i.called))
	for k := 1; k < len(i.called); k++ {
		gaps = append(gaps, i.called[k].Sub(i.called[k-1]))
	}
	return gaps
}

// inventoryService describes the service, as protoc would have generated it.
func inventoryService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "shop.Inventory",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Reserve", Handler: handleReserve}},
	}
}

func handleReserve(service any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the signature is gRPC's
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	info := &grpc.UnaryServerInfo{Server: service, FullMethod: reserve}
	return intercept(ctx, request, info, func(ctx context.Context, request any) (any, error) {
		return service.(*inventory).Reserve(ctx, request.(*wrapperspb.StringValue))
	})
}
