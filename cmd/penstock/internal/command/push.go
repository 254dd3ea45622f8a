package command

import (
	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
)

func newPush(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push PATH... [flags]",
		Short: "Write documents to etcd, all in one transaction",
		Long: `Push makes the documents in etcd those at the paths: it validates them, shows what
would change, asks, and writes all of them in one transaction. Documents that
are in etcd and not at the paths are deleted; they are listed before. What was
there stays in the history: see penstock history and penstock rollback.

When somebody else writes between the comparison and the writing, nothing is
written, and the exit code is 4.

On a terminal push asks before it writes. Where nobody can be asked, in scripts,
it wants --yes and fails at once without.

Instances that are told to hold back changes that take out too many rules at once
(core.Config.MaxRemoval) let those pass that somebody has agreed to on a terminal,
or with --confirm-removals. See penstock confirm for what was held back already.

With --wait it returns when every live instance has reported the new revision,
and exits with 1 if one did not in time or has rejected a document, with 5 if no
instance reports at all. With --min-instances it waits until so many have; 0 says
that there may be none.

With --dry-run and --expect-rev it tells whether somebody wrote after the revision.

Exit code: 0 when etcd holds the documents, 1 when they have mistakes, when the
answer was no or when --wait was in vain, 2 for a wrong command line, 3 when a
file or etcd failed, 4 when somebody else wrote meanwhile, 5 when --wait found
nobody to wait for.

` + connection.Help,
		Example: `  penstock push rules/ --app shop --dry-run
  penstock push rules/ --app shop --message "half for mobile"
  penstock push rules/ --app shop --yes --wait --timeout 30s   # in a pipeline`,
		Args: documentPaths(),
	}
	p := publishingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		if err := p.check(cmd, env); err != nil {
			return err
		}
		next, err := env.judgeNamed(cmd.Context(), paths)
		if err != nil {
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
