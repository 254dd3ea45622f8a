package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

func newConfirm(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "confirm [flags]",
		Short: "Put in force what instances hold back, for it takes out too many rules",
		Long: `Confirm tells the instances that have held back what is in etcd now, for it would
take out more of their rules at once than they allow (core.Config.MaxRemoval), to
put it in force all the same. It speaks of what is in etcd now: what is taken out
later is held back again. See penstock status for who holds back what.

When no instance reports that it holds anything back, nothing is confirmed, and
the exit code is 5. With --force it is confirmed all the same, for instances that
do not report.

Exit code: 0 when it was written, 2 for a wrong command line, 3 when etcd failed,
5 when nobody holds anything back.

` + connection.Help,
		Example: `  penstock status --app shop
  penstock confirm --app shop`,
		Args: arguments(0, 0, ""),
	}
	force := cmd.Flags().Bool("force", false, "confirm though no instance reports that it holds anything back")
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		if !*force {
			if err := s.expectHolding(cmd.Context()); err != nil {
				return err
			}
		}
		revision, err := request(cmd.Context(), s, func(ctx context.Context) (int64, error) {
			return s.store.Confirm(ctx, whoami())
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Out, "%s: removals up to revision %d are confirmed\n", s.place(), revision)
		return nil
	}
	return cmd
}

// expectHolding fails unless an instance holds something back.
func (s *session) expectHolding(ctx context.Context) error {
	found, err := s.standing(ctx)
	if err != nil {
		return err
	}
	const kept = "nothing was confirmed"
	switch reports := len(found.instances); {
	case holdingBack(found.instances) > 0:
		return nil
	case reports == 0 && found.revision == 0:
		return failure{ExitNobody, fmt.Errorf("%s: there are no documents, and no instance reports: is that the right place? %s", s.place(), kept)}
	case reports == 0:
		return failure{ExitNobody, errors.New(nobody + "; --force confirms for those that do not: " + kept)}
	default:
		return failure{ExitNobody, fmt.Errorf("%s: none of %s holds anything back: %s", s.place(), wording.Count(reports, "instance"), kept)}
	}
}
