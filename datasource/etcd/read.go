package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/core"
)

// contents are all documents as they were at one revision.
type contents struct {
	change   core.Change
	versions map[string]int64 // see run.versions
	header   *pb.ResponseHeader
}

// readAll reads all documents at one revision. It returns errReplaced if the
// cluster is at a position before since.
func (r *run) readAll(ctx context.Context, kv pb.KVClient, since position) (all contents, err error) {
	all.versions = make(map[string]int64)
	all.header, err = r.readPages(ctx, kv, &pb.RangeRequest{}, since, func(pair *mvccpb.KeyValue) {
		all.versions[r.documentName(pair)] = pair.ModRevision
		r.addPair(&all.change, pair)
	})
	all.change.Complete, all.change.Revision = true, all.header.GetRevision()
	return all, err
}

// readPages reads all keys that are followed, page by page, and calls do with each.
// All pages are read at the revision of the first page, whose header it returns.
func (r *run) readPages(
	ctx context.Context, kv pb.KVClient, request *pb.RangeRequest, since position, do func(*mvccpb.KeyValue),
) (header *pb.ResponseHeader, err error) {
	request.Key, request.RangeEnd = r.followedRange()
	request.Limit = int64(r.opts.PageSize)
	for {
		page, err := r.readFromAnyMember(ctx, kv, request)
		if err != nil {
			return nil, err
		}
		// After a restore the same revision may stand for other documents.
		now := positionOf(page.Header)
		if !since.precedes(now) {
			return nil, errReplaced
		}
		since = now
		if header == nil {
			if err := r.checkCount(r.countDocuments(page)); err != nil {
				return nil, err
			}
			header, request.Revision = page.Header, page.Header.Revision
		}
		for _, pair := range page.Kvs {
			do(pair)
		}
		if !page.More || len(page.Kvs) == 0 {
			return header, nil
		}
		last := page.Kvs[len(page.Kvs)-1].Key
		request.Key = slices.Concat(last, []byte{0})
	}
}

// readFromAnyMember reads a page and tries each member once. Requests go to the members
// in turn: without retries, one that is partitioned or hangs would fail every read
// that has as many pages as there are members.
func (r *run) readFromAnyMember(ctx context.Context, kv pb.KVClient, request *pb.RangeRequest) (page *pb.RangeResponse, err error) {
	for range r.members {
		page, err = r.readPage(ctx, kv, request)
		if !unreachable(err) || ctx.Err() != nil {
			break
		}
	}
	return page, err
}

func (r *run) readPage(ctx context.Context, kv pb.KVClient, request *pb.RangeRequest) (*pb.RangeResponse, error) {
	return r.readOnce(ctx, kv, request, r.callOptions()...)
}

// unreachable reports whether an error means that the member is down, partitioned
// or too slow, so that another member may answer.
func unreachable(err error) bool {
	code := status.Code(err)
	if known := (rpctypes.EtcdError{}); errors.As(err, &known) {
		code = known.Code()
	}
	return errors.Is(err, errSilent) || code == codes.Unavailable || code == codes.DeadlineExceeded
}

// countDocuments returns how many documents there are, by the first page.
func (r *run) countDocuments(first *pb.RangeResponse) int {
	if len(first.Kvs) > 0 && r.isConfirmationKey(first.Kvs[0]) {
		return int(first.Count) - 1
	}
	return int(first.Count)
}

func (r *run) checkCount(count int) error {
	if count > r.opts.MaxDocuments {
		return fmt.Errorf("%d documents are more than Options.MaxDocuments allows, which is %d: none was applied",
			count, r.opts.MaxDocuments)
	}
	return nil
}

// followedRange is the range of keys that documents and the confirmation can have.
func (s *Source) followedRange() (first, end []byte) {
	_, to := s.keys.DocumentRange()
	return []byte(s.keys.Documents), []byte(to)
}
