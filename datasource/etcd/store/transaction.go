package store

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxOps is how many operations, and how many comparisons, etcd accepts in a
// transaction by default. Nested transactions share the limit: the larger of the two
// numbers of a transaction is subtracted from what those nested in it may have.
const maxOps = 128

// nest packs operations into nested transactions if there are too many for one. No
// transaction has more operations than the width returned, and the widths of all
// levels add up to at most the limit: 64 × 64 for more than 128 operations,
// 42 × 42 × 42 for more than 4096.
func nest(operations []clientv3.Op, limit int) (packed []clientv3.Op, width int) {
	depth := 1
	for capacity := 0; capacity < len(operations); depth++ {
		width, capacity = limit/depth, 1
		for range depth {
			capacity *= width
		}
	}
	for len(operations) > width {
		var outer []clientv3.Op
		for inner := range slices.Chunk(operations, width) {
			outer = append(outer, clientv3.OpTxn(nil, inner, nil))
		}
		operations = outer
	}
	return operations, width
}

// conditions returns the conditions of a push: no document and no entry of the
// history has been written since the expected revision, and no document has been
// deleted, of as many as the limit allows to compare.
func (s *Store) conditions(p plan, expect int64, limit int) []clientv3.Cmp {
	first, end := s.keys.DocumentRange()
	comparisons := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(first).WithRange(end), "<", expect+1),
		clientv3.Compare(clientv3.ModRevision(s.entriesPrefix()).WithPrefix(), "<", expect+1),
	}
	for _, key := range slices.Concat(p.unchanged, p.changed) {
		if len(comparisons) == limit {
			break
		}
		comparisons = append(comparisons, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
	}
	return comparisons
}

// wrapError wraps an error of the transaction and says what to do about it.
func (p *plan) wrapError(err error) error {
	const tooLarge = "store: the push is too large for one request, with %d bytes of documents and %d of history: " +
		"push fewer changes at a time if the documents are the larger part, keep fewer or smaller documents otherwise, " +
		"or raise etcd's --max-request-bytes, 1.5 MiB by default, and the client's MaxCallSendMsgSize: %w"
	code := codeOf(err)
	var server rpctypes.EtcdError
	switch {
	case errors.Is(err, rpctypes.ErrRequestTooLarge), code == codes.ResourceExhausted && !errors.As(err, &server):
		return fmt.Errorf(tooLarge, p.documents, p.history, err)
	case errors.Is(err, rpctypes.ErrTooManyOps):
		return fmt.Errorf("store: the push has too many operations: set etcd's --max-txn-ops to %d, its default, or more: %w", maxOps, err)
	case code == codes.ResourceExhausted, code == codes.PermissionDenied, code == codes.InvalidArgument, code == codes.Unauthenticated:
		return fmt.Errorf("store: pushing: %w", err)
	default:
		return fmt.Errorf("store: whether the push was made is not known, the history tells: %w", err)
	}
}

// codeOf returns the code of an error of etcd, or of the connection to it.
func codeOf(err error) codes.Code {
	var server rpctypes.EtcdError
	if errors.As(err, &server) {
		return server.Code()
	}
	return status.Code(err)
}
