package etcdtest_test

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// afterRange calls do after a client has read its n-th page.
func afterRange(n int64, do func()) grpc.DialOption {
	var pages atomic.Int64
	return onRange(func(*pb.RangeRequest) {
		if pages.Add(1) == n {
			do()
		}
	})
}

// onRange calls do with each range request after it was answered.
func onRange(do func(*pb.RangeRequest)) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		err := invoke(ctx, method, request, reply, cc, opts...)
		if r, ok := request.(*pb.RangeRequest); ok {
			do(r)
		}
		return err
	})
}

// beforeRange calls do before a client reads its n-th page.
func beforeRange(n int64, do func()) grpc.DialOption {
	var pages atomic.Int64
	return onRequest(func(request any) {
		if _, ok := request.(*pb.RangeRequest); ok && pages.Add(1) == n {
			do()
		}
	})
}

// beforeTxn calls do before the n-th transaction of a client.
func beforeTxn(n int64, do func()) grpc.DialOption {
	var transactions atomic.Int64
	return onRequest(func(request any) {
		if _, ok := request.(*pb.TxnRequest); ok && transactions.Add(1) == n {
			do()
		}
	})
}

// onRequest calls do with each request, before it is sent.
func onRequest(do func(request any)) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		do(request)
		return invoke(ctx, method, request, reply, cc, opts...)
	})
}

// neverDenied makes requests of the user root again when they are denied: etcd 3.5 does not find a user for a moment now and
// then, once in some 200 tests.
func neverDenied() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, request, reply any, cc *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		ctx, cancel := context.WithTimeout(ctx, eventTimeout)
		defer cancel()
		for {
			err := invoke(ctx, method, request, reply, cc, opts...)
			if status.Code(err) != codes.PermissionDenied {
				return err
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(time.Millisecond):
			}
		}
	})
}

// beforeWatch calls do before the n-th watch that a client opens.
func beforeWatch(n int64, do func()) grpc.DialOption {
	var watches atomic.Int64
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "/Watch") && watches.Add(1) == n {
			do()
		}
		return open(ctx, desc, cc, method, opts...)
	})
}

// onResponse calls do with each response on a watch.
func onResponse(do func(*pb.WatchResponse)) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return tapped{stream, do}, err
	})
}

// onWatchRequest calls do with each request on a watch, before it is sent.
func onWatchRequest(do func(*pb.WatchRequest)) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return asking{stream, do}, err
	})
}

type asking struct {
	grpc.ClientStream
	do func(*pb.WatchRequest)
}

func (a asking) SendMsg(message any) error {
	if request, ok := message.(*pb.WatchRequest); ok {
		a.do(request)
	}
	return a.ClientStream.SendMsg(message)
}

// repeated delivers each watch response with events twice, and repeats the first
// such response after every other.
func repeated() grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		open grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := open(ctx, desc, cc, method, opts...)
		return &repeating{ClientStream: stream}, err
	})
}

type repeating struct {
	grpc.ClientStream
	first []*mvccpb.Event
	again [][]*mvccpb.Event // to be delivered again
}

func (r *repeating) RecvMsg(message any) error {
	response, ok := message.(*pb.WatchResponse)
	if ok && len(r.again) > 0 {
		response.Header, response.Events = &pb.ResponseHeader{}, r.again[0]
		r.again = r.again[1:]
		return nil
	}
	err := r.ClientStream.RecvMsg(message)
	if ok && err == nil && len(response.Events) > 0 {
		if r.first == nil {
			r.first = response.Events
		}
		r.again = append(r.again, response.Events, r.first)
	}
	return err
}

type tapped struct {
	grpc.ClientStream
	do func(*pb.WatchResponse)
}

func (t tapped) RecvMsg(message any) error {
	err := t.ClientStream.RecvMsg(message)
	if response, ok := message.(*pb.WatchResponse); ok && err == nil {
		t.do(response)
	}
	return err
}
