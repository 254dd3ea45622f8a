package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func newRollback(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback REVISION [flags]",
		Short: "Restore the documents of an earlier revision",
		Long: `Rollback writes the documents of a revision of the history again, byte for byte, as
a new revision. It shows what changes and asks, as push does, and has the same
flags. penstock history lists the revisions. Rules of kinds that this penstock does
not know come back as they were, with a warning.

Exit code: 0 when etcd has the documents, 1 when they have mistakes, when the
answer was no or when --wait timed out, 2 for a wrong command line, 3 when etcd
failed or the history has no such revision, 4 when somebody else wrote meanwhile,
5 when --wait found no instance to wait for.

` + connection.Help,
		Example: `  penstock history --app shop
  penstock rollback 57 --app shop --dry-run
  penstock rollback 57 --app shop --yes --wait`,
		Args: arguments(1, 1, "to which revision? penstock history lists them"),
	}
	p := addPublishFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		revision, err := parseRevision(args[0])
		if err == nil {
			err = p.check(cmd, env)
		}
		if err == nil {
			err = p.checkStrict(documents.Collection{})
		}
		if err != nil {
			return err
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		if p.message == "" {
			p.message = fmt.Sprintf("rollback to %d", revision)
		}
		return p.rollBack(cmd.Context(), env, s, revision)
	}
	return cmd
}

func (p *publishOptions) rollBack(ctx context.Context, env Env, s *session, revision int64) error {
	earlier, err := s.at(ctx, revision)
	if err != nil {
		return err
	}
	current, err := s.pull(ctx)
	if err != nil {
		return err
	}
	next := documents.Judge(env.table(), fromStore(earlier.Documents), documents.LeftOut)
	if len(next.Problems) > 0 {
		next.Show(env.Err)
		return failure{ExitNo, fmt.Errorf("revision %d cannot be brought back: %s", revision, next.Summary())}
	}
	if err := p.checkStrict(next); err != nil {
		return err
	}
	return p.publish(ctx, env, s, current, next)
}

// at reads a revision of the history.
func (s *session) at(ctx context.Context, revision int64) (store.Contents, error) {
	contents, err := request(ctx, s, func(ctx context.Context) (store.Contents, error) { return s.store.At(ctx, revision) })
	if errors.Is(err, store.ErrNoRevision) {
		return store.Contents{}, failure{ExitFailed, fmt.Errorf("the history has no revision %d: penstock history lists those it has", revision)}
	}
	return contents, err
}

func parseRevision(text string) (int64, error) {
	revision, err := strconv.ParseInt(text, 10, 64)
	if err != nil || revision <= 0 {
		return 0, fmt.Errorf("%q is no revision: penstock history lists them", text)
	}
	return revision, nil
}
