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
		Short: "Confirm a removal of rules that instances hold back",
		Long: `Instances hold a change back if it removes more of their rules at once than they
allow (core.Config.MaxRemoval), or of the entries of a list. Confirm makes them
apply the documents and lists that are in etcd now. Later removals are held back
again. penstock status shows which instances hold back what.

If no instance reports that it holds anything back, nothing is confirmed, and the
exit code is 5. With --force it is confirmed anyway, for instances that do not
report.

Exit code: 0 when it was written, 2 for a wrong command line, 3 when etcd failed,
5 when no instance holds anything back.

` + connection.Help,
		Example: `  penstock status --app shop
  penstock confirm --app shop`,
		Args: arguments(0, 0, ""),
	}
	force := cmd.Flags().Bool("force", false, "confirm even if no instance reports that it holds anything back")
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		if !*force {
			if err := s.requireHeldBack(cmd.Context()); err != nil {
				return err
			}
		}
		revision, err := request(cmd.Context(), s, func(ctx context.Context) (int64, error) {
			return s.store.Confirm(ctx, whoami())
		})
		if err != nil {
			return err
		}
		lists, err := request(cmd.Context(), s, func(ctx context.Context) (int64, error) {
			return s.store.ConfirmLists(ctx, whoami())
		})
		if err != nil {
			env.warn(fmt.Sprintf("removals of rules are confirmed, those of lists are not: %v", err))
		}
		revision = max(revision, lists)
		fmt.Fprintf(env.Out, "%s: removals up to revision %d are confirmed\n", s.place(), revision)
		return nil
	}
	return cmd
}

// requireHeldBack returns an error unless an instance holds something back.
func (s *session) requireHeldBack(ctx context.Context) error {
	found, err := s.fleetStatus(ctx)
	if err != nil {
		return err
	}
	const kept = "nothing was confirmed"
	switch reports := len(found.instances); {
	case countHoldingBack(found.instances) > 0:
		return nil
	case reports == 0 && found.revision == 0:
		return failure{ExitNobody, fmt.Errorf("%s: there are no documents, and no instance reports: is that the right place? %s", s.place(), kept)}
	case reports == 0:
		return failure{ExitNobody, errors.New(noInstances + "; --force confirms for those that do not: " + kept)}
	default:
		return failure{ExitNobody, fmt.Errorf("%s: none of %s holds anything back: %s", s.place(), wording.Count(reports, "instance"), kept)}
	}
}
