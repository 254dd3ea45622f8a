package store

import (
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/etcd"
)

// Store gives access to the rule documents below a prefix, their history and the
// reports of the instances that follow them. It keeps no state: its methods may be
// called concurrently, and any number of stores may use one prefix. While the
// cluster cannot be reached, a method waits until its context ends.
type Store struct {
	client *clientv3.Client
	keys   etcd.Keys
	clock  clock.Clock
}

// New returns a store of the documents below the prefix. The caller closes the
// client. New adds a slash to a prefix that does not end in one.
func New(client *clientv3.Client, prefix string) (*Store, error) {
	if client == nil || client.ActiveConnection() == nil {
		return nil, errors.New("store: the client has no connection: make it with clientv3.New")
	}
	keys, err := etcd.KeysOf(prefix)
	if err != nil {
		return nil, err
	}
	return &Store{client: client, keys: keys, clock: clock.System()}, nil
}

// now returns the time by the wall clock, also after it was set: a server may live long.
func (s *Store) now() time.Time { return clock.TimeOf(s.clock, s.clock.Now()) }
