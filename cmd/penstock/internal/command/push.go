package command

import (
	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
)

const pushLong = `Push replaces the documents in etcd by those at the paths: it validates them, shows
what would change, asks, and writes all of them in one transaction. Documents
that are in etcd but not at the paths are listed and deleted. The earlier
documents stay in the history: see penstock history and penstock rollback.

` + unknownKindsHelp + `

If somebody else writes between the comparison and the write, nothing is written,
and the exit code is 4.

On a terminal push asks before it writes. Without a terminal, as in scripts, it
needs --yes and fails at once without it.

Instances can hold back changes that remove too many rules at once
(core.Config.MaxRemoval). They apply such a change if it was confirmed on a
terminal, or with --confirm-removals. For a change that is already held back, see
penstock confirm.

With --wait push returns when every live instance has reported the new revision. It
exits with 1 if one does not in time or rejects a document, and with 5 if no instance
reports at all. With --min-instances it waits until so many have reported; 0 means
that there may be none. It names instances that report no longer. One that had not
come to the revision may have been replaced, or hang with the rules of before: of
that it warns, and with --strict it exits with 1. It warns of rules in the documents
that it has written whose resource, origin or attributes no live instance has ever
seen, as if a name is misspelled; with --strict it then exits with 1. For origins and
attributes it waits up to ten seconds for calls; where none comes it warns that they
are not known, also with --strict. With --strict nothing is written if documents have
rules of unknown kinds.

With --dry-run and --expect-rev it checks whether somebody wrote after the revision.

Exit code: 0 when etcd has the documents, 1 when they have mistakes, when the
answer was no or when --wait timed out, 2 for a wrong command line, 3 when a file
or etcd failed, 4 when somebody else wrote meanwhile, 5 when --wait found no
instance to wait for.

` + connection.Help

func newPush(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push PATH... [flags]",
		Short: "Write documents to etcd, all in one transaction",
		Long:  pushLong,
		Example: `  penstock push rules/ --app shop --dry-run
  penstock push rules/ --app shop --message "half for mobile"
  penstock push rules/ --app shop --yes --wait --timeout 30s   # in a pipeline`,
		Args: documentPaths(),
	}
	p := addPublishFlags(cmd)
	allow := unknownKindsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		if err := p.check(cmd, env); err != nil {
			return err
		}
		next, err := env.readNamed(cmd.Context(), paths, unlessMisspelled(*allow))
		if err != nil {
			return err
		}
		if err := p.checkStrict(next); err != nil {
			return err
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		current, err := s.pull(cmd.Context())
		if err != nil {
			return err
		}
		return p.publish(cmd.Context(), env, s, current, next)
	}
	return cmd
}
