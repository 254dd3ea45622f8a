package store

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"
)

// levels checks that no nested transaction has more operations than width, and
// returns the depth of nesting and the keys in order.
func levels(t require.TestingT, operations []clientv3.Op, width int) (depth int, keys []string) {
	require.LessOrEqual(t, len(operations), width)
	for _, op := range operations {
		if !op.IsTxn() {
			keys = append(keys, string(op.KeyBytes()))
			continue
		}
		_, inner, otherwise := op.Txn()
		require.Empty(t, otherwise)
		below, innerKeys := levels(t, inner, width)
		depth, keys = max(depth, below), append(keys, innerKeys...)
	}
	return depth + 1, keys
}

func TestNestedTransactionsStayWithinTheServersLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(64, 128).Draw(t, "limit")
		var operations []clientv3.Op
		var want []string
		for i := range rapid.IntRange(1, 5000).Draw(t, "operations") {
			want = append(want, fmt.Sprint(i))
			operations = append(operations, clientv3.OpPut(want[i], ""))
		}
		packed, width := nest(operations, limit)
		depth, keys := levels(t, packed, width)
		assert.LessOrEqual(t, depth*width, limit)
		assert.Equal(t, want, keys)
	})
}

func TestNestingIsNoDeeperThanNeeded(t *testing.T) {
	for operations, want := range map[int]int{1: 128, 128: 128, 129: 64, 4096: 64, 4097: 42, 42 * 42 * 42: 42} {
		_, width := nest(make([]clientv3.Op, operations), maxOps)
		assert.Equal(t, want, width, "%d operations", operations)
	}
}

func TestErrorsOfATransactionSayWhatToDo(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		says string
	}{
		"too large for the server": {rpctypes.ErrRequestTooLarge, "too large for one request, with 5 bytes of documents and 7 of history"},
		"too large to be received": {status.Error(codes.ResourceExhausted, "received message larger than max"), "--max-request-bytes"},
		"too large to be sent":     {status.Error(codes.ResourceExhausted, "trying to send message larger than max"), "MaxCallSendMsgSize"},
		"too many operations":      {rpctypes.ErrTooManyOps, "--max-txn-ops to 128"},
		"no space":                 {rpctypes.ErrNoSpace, "store: pushing: "},
		"no right":                 {rpctypes.ErrPermissionDenied, "store: pushing: "},
		"no answer":                {context.DeadlineExceeded, "whether the push was made is not known"},
		"lost connection":          {status.Error(codes.Unavailable, "gone"), "whether the push was made is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&plan{documents: 5, history: 7}).wrapError(test.err)
			require.ErrorIs(t, err, test.err)
			assert.ErrorContains(t, err, test.says)
		})
	}
}

func TestConflictNamesAuthorAndDocuments(t *testing.T) {
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprint("d", i)
	}
	for want, conflict := range map[string]*ConflictError{
		"store: somebody has written since revision 5: pull and push again":                            {Expect: 5},
		"store: somebody has written since revision 5: pull and push again: a, b":                      {Expect: 5, Documents: []string{"a", "b"}},
		`store: a push (revision 7, author "alice") has written since revision 5: pull and push again`: {Expect: 5, Pushed: &Revision{Revision: 7, Author: "alice"}},
		"store: somebody has written since revision 5: pull and push again: " +
			"d0, d1, d2, d3, d4, d5, d6, d7, d8, d9 and 2 more": {Expect: 5, Documents: many},
		"store: revision 5 has been compacted, what was written since cannot be told: pull and push again": {Expect: 5, Compacted: true},
	} {
		require.EqualError(t, conflict, want)
		assert.ErrorIs(t, conflict, ErrConflict)
	}
}
