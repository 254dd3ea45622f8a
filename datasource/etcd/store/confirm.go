package store

import (
	"context"
	"fmt"
)

// Confirm tells the instances that have held back what there is now, for it would
// take out too many rules at once, to put it in force: see core.Config.MaxRemoval.
// It returns the revision of the confirmation. What is taken out after that is not
// confirmed.
func (s *Store) Confirm(ctx context.Context, author string) (revision int64, err error) {
	key, value := s.keys.Confirmation(author)
	put, err := s.client.Put(ctx, key, value)
	if err != nil {
		return 0, fmt.Errorf("store: confirming removals below %s: %w", s.keys.Documents, err)
	}
	return put.Header.Revision, nil
}
