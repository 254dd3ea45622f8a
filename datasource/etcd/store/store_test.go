package store_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestInvalidArgumentsAreErrors(t *testing.T) {
	_, err := store.New(nil, etcd.Prefix("shop"))
	require.ErrorContains(t, err, "no connection")
	_, err = store.New(clientv3.NewCtxClient(t.Context()), etcd.Prefix("shop"))
	require.ErrorContains(t, err, "no connection")

	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, client.Close()) }()
	_, err = store.New(client, "")
	require.ErrorContains(t, err, "the prefix is empty")
	_, err = store.New(client, "/penstock/shop")
	require.NoError(t, err)
}

// A push fails with a conflict if somebody has changed the documents since the pull.
func Example() {
	raise := func(ctx context.Context, client *clientv3.Client, raised []byte) error {
		rules, err := store.New(client, etcd.Prefix("shop"))
		if err != nil {
			return err
		}
		found, err := rules.Pull(ctx)
		if err != nil {
			return err
		}
		for i, d := range found.Documents {
			if d.Name == "orders.yaml" {
				found.Documents[i].Data = raised
			}
		}
		revision, err := rules.Push(ctx, store.Push{
			Documents: found.Documents, Expect: found.Revision, Author: "alice", Message: "more room for orders",
		})
		if err != nil {
			return err // a *store.ConflictError when somebody has
		}
		return rules.WaitFor(ctx, revision.Revision, nil)
	}
	_ = raise
}
