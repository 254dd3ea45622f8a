package store

import (
	"context"
	"errors"
	"fmt"
)

const defaultKeep = 100 // entries of the history

// Push is a set of documents to be put in place of those that there are.
type Push struct {
	// Documents are all that shall be there. Those that are there already are
	// not written, others that are there are deleted.
	Documents []Document

	// Expect is the revision at which the documents to be replaced were pulled.
	// Required.
	Expect int64

	// ConfirmRemovals tells the instances that the rules of documents that it
	// deletes, or that are missing in those it writes, may go, however many they
	// are: see core.Config.MaxRemoval.
	ConfirmRemovals bool

	// Author and Message are for the history, to read.
	Author  string
	Message string

	// Keep is how many entries the history keeps. The entries that a push makes
	// stay in any case. Defaults to 100.
	Keep int
}

// complete returns the push with what was left out filled in, or all that is
// wrong with it.
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

// Push puts the documents in place of those that there are and returns the
// revision that this makes. When somebody has written since the expected one,
// nothing changes and it returns a [*ConflictError]. It makes sure of both in one
// transaction; the package comment says what cannot be seen.
//
// A push that changes nothing writes nothing and returns the present revision:
// the latest entry of the history, or, if other tools have written since, one
// that is in no history and has the highest revision of the documents.
//
// An error other than a conflict or a mistake in the push may leave open whether
// it was made: it says so.
func (s *Store) Push(ctx context.Context, push Push) (Revision, error) {
	push, err := push.complete()
	if err != nil {
		return Revision{}, err
	}
	now, err := s.look(ctx, push.Expect)
	if err != nil {
		return Revision{}, err
	}
	if err := s.conflict(now, push.Expect); err != nil {
		return Revision{}, err
	}
	plan := s.plan(now, push)
	if plan.empty() {
		return now.present(), nil
	}
	if err := s.record(&plan, now, push); err != nil {
		return Revision{}, err
	}
	return s.commit(ctx, plan, push.Expect)
}

// commit does what was planned, if nobody has written.
func (s *Store) commit(ctx context.Context, plan plan, expect int64) (Revision, error) {
	operations, width := nest(plan.operations, maxOps)
	done, err := s.client.Txn(ctx).If(s.unchanged(plan, expect, width)...).Then(operations...).Commit()
	if err != nil {
		return Revision{}, plan.explain(err)
	}
	if !done.Succeeded {
		return Revision{}, s.overtaken(ctx, expect)
	}
	plan.revision.Revision = done.Header.Revision
	return plan.revision, nil
}

// overtaken returns the conflict that the transaction found.
func (s *Store) overtaken(ctx context.Context, expect int64) error {
	now, err := s.look(ctx, expect)
	if err == nil {
		err = s.conflict(now, expect)
	}
	if errors.Is(err, ErrConflict) {
		return err
	}
	return &ConflictError{Expect: expect} // who it was cannot be told at present
}

// present is the revision of documents that a push found as it wanted them.
func (s state) present() Revision {
	if s.last != nil && s.recorded() {
		return s.last.Revision
	}
	return Revision{Revision: s.latest(), Documents: len(s.documents)}
}
