package store

import (
	"context"
	"errors"
	"fmt"
)

const defaultKeep = 100 // entries of the history

// Push is a set of documents that replaces the present ones.
type Push struct {
	// Documents is the complete set. Documents that are in etcd already with the
	// same data are not written; documents that are not in the set are deleted.
	Documents []Document

	// Expect is the revision at which the documents to be replaced were pulled.
	// Required.
	Expect int64

	// ConfirmRemovals makes instances apply the push even if it removes many rules
	// at once: see core.Config.MaxRemoval.
	ConfirmRemovals bool

	// Author and Message are recorded in the history.
	Author  string
	Message string

	// Keep is how many entries the history keeps, apart from those that this push
	// adds, which are always kept. Defaults to 100.
	Keep int
}

// complete returns the push with the defaults filled in, or all its mistakes.
func (p Push) complete() (Push, error) {
	var faults []error
	if p.Expect <= 0 {
		faults = append(faults, fmt.Errorf("store: Push.Expect is %d: give the revision that was pulled", p.Expect))
	}
	if p.Keep < 0 {
		faults = append(faults, errors.New("store: Push.Keep is negative: leave it out for the default"))
	}
	if p.Keep == 0 {
		p.Keep = defaultKeep
	}
	documents, err := sorted(p.Documents)
	p.Documents = documents
	return p, errors.Join(errors.Join(faults...), err)
}

// Push replaces the present documents and returns the new revision. If somebody has
// written since the expected revision, it changes nothing and returns a
// [*ConflictError]. Check and write are one transaction; the package comment
// describes the one gap.
//
// A push that changes nothing writes nothing and returns the present revision: the
// latest entry of the history, or, if other tools have written since, one that is
// not in the history and has the highest revision of the documents.
//
// After an error other than a conflict or a mistake in the push it may be unknown
// whether the push was made. The error says so.
func (s *Store) Push(ctx context.Context, push Push) (Revision, error) {
	push, now, err := s.check(ctx, push)
	if err != nil {
		return Revision{}, err
	}
	plan := s.plan(now, push)
	if plan.empty() {
		return now.presentRevision(), nil
	}
	if err := s.recordHistory(&plan, now, push); err != nil {
		return Revision{}, err
	}
	return s.commit(ctx, plan, push.Expect)
}

// Check returns an error if the push cannot be made now, because of a mistake in it
// or a [*ConflictError]. It writes nothing: somebody else may still write before the
// push is made.
func (s *Store) Check(ctx context.Context, push Push) error {
	_, _, err := s.check(ctx, push)
	return err
}

// check returns the push with the defaults filled in, and the present state.
func (s *Store) check(ctx context.Context, push Push) (completed Push, now state, err error) {
	if push, err = push.complete(); err != nil {
		return Push{}, state{}, err
	}
	if now, err = s.readState(ctx, push.Expect); err != nil {
		return Push{}, state{}, err
	}
	return push, now, s.conflict(now, push.Expect)
}

// commit executes the plan, unless somebody has written.
func (s *Store) commit(ctx context.Context, plan plan, expect int64) (Revision, error) {
	operations, width := nest(plan.operations, maxOps)
	done, err := s.client.Txn(ctx).If(s.conditions(plan, expect, width)...).Then(operations...).Commit()
	if err != nil {
		return Revision{}, plan.wrapError(err)
	}
	if !done.Succeeded {
		return Revision{}, s.conflictAfterFailure(ctx, expect)
	}
	plan.revision.Revision = done.Header.Revision
	return plan.revision, nil
}

// conflictAfterFailure returns the conflict because of which the transaction failed.
func (s *Store) conflictAfterFailure(ctx context.Context, expect int64) error {
	now, err := s.readState(ctx, expect)
	if err == nil {
		err = s.conflict(now, expect)
	}
	if errors.Is(err, ErrConflict) {
		return err
	}
	return &ConflictError{Expect: expect} // the details are unknown
}

// presentRevision returns the revision of the present documents.
func (s state) presentRevision() Revision {
	if s.lastEntry != nil && s.isRecorded() {
		return s.lastEntry.Revision
	}
	return Revision{Revision: s.latestRevision(), Documents: len(s.documents)}
}
