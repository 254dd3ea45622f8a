package store

import (
	"context"
	"fmt"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/internal/listformat"
)

// Confirm makes instances apply the present documents even if they held them back
// because they remove too many rules at once: see core.Config.MaxRemoval. It
// returns the revision of the confirmation. Later removals are not confirmed.
func (s *Store) Confirm(ctx context.Context, author string) (revision int64, err error) {
	key, value := s.keys.Confirmation(author)
	put, err := s.client.Put(ctx, key, value)
	if err != nil {
		return 0, fmt.Errorf("store: confirming removals below %s: %w", s.keys.Documents, err)
	}
	return put.Header.Revision, nil
}

// ConfirmLists is [Store.Confirm] for lists: instances put in force what they have held back
// of them because too many entries would go at once.
func (s *Store) ConfirmLists(ctx context.Context, author string) (revision int64, err error) {
	key, value := etcd.Keys{Documents: listformat.ManifestKeys(s.keys.Lists)}.Confirmation(author)
	put, err := s.client.Put(ctx, key, value)
	if err != nil {
		return 0, fmt.Errorf("store: confirming removals below %s: %w", s.keys.Lists, err)
	}
	return put.Header.Revision, nil
}
