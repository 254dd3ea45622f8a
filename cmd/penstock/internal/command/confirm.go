package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
)

func newConfirm(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "confirm [flags]",
		Short: "Put in force what instances hold back, for it takes out too many rules",
		Long: `Confirm tells the instances that have held back what is in etcd now, for it would
take out more of their rules at once than they allow (core.Config.MaxRemoval), to
put it in force all the same. It speaks of what is in etcd now: what is taken out
later is held back again. See penstock status for who holds back what.

Exit code: 0 when it was written, 2 for a wrong command line, 3 when etcd failed.

` + connection.Help,
		Example: `  penstock status --app shop
  penstock confirm --app shop`,
		Args: arguments(0, 0, ""),
	}
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
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
