package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
)

// present is what --wait says for the revision that is in etcd now.
const present = "present"

func newStatus(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show which instances run by which revision",
		Long: `Status shows the revision in etcd and, of every live instance that reports, the
revision it runs by, how many documents and rules it has, and which documents it
rejected and why. An instance is behind when it has not come to the revision in
etcd yet, and on a copy when it could not read etcd since it was started. One that
holds a change back, for it takes out too many rules at once, waits for penstock
confirm. Times are UTC.

With --wait it first waits until every live instance has come to the revision in
etcd, with --wait=REVISION to that one. With --min-instances it waits until so many
have; 0 says that there may be none.

Exit code: 0 when all instances are up to date (or, without --wait, none reports),
1 when one is behind, on a copy, holds a change back or has rejected documents or
when there are fewer than --min-instances, 2 for a wrong command line, 3 when etcd
failed, 5 when --wait found nobody to wait for.

` + connection.Help,
		Example: `  penstock status --app shop
  penstock status --app shop --wait --timeout 30s
  penstock status --app shop --wait=57 --output json`,
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 && cmd.Flags().Changed("wait") {
			return fmt.Errorf("unexpected argument %q: a revision to wait for is joined to the flag: --wait=%s", args[0], args[0])
		}
		return arguments(0, 0, "")(cmd, args)
	}
	wait := cmd.Flags().String("wait", "", "first wait until all instances are at this `revision`")
	cmd.Flags().Lookup("wait").NoOptDefVal = present
	var p patience
	patienceFlags(cmd, &p)
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var wanted int64
		if *wait != "" && *wait != present {
			var err error
			if wanted, err = parseRevision(*wait); err != nil {
				return err
			}
		}
		if err := p.check(cmd, *wait != ""); err != nil {
			return err
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		var late error
		if *wait != "" {
			late = env.awaitWanted(cmd.Context(), s, wanted, p)
		}
		return env.showStanding(cmd.Context(), s, late, *output)
	}
	return cmd
}

// showStanding shows how it stands after a wait, which may have been in vain,
// and fails unless all is well.
func (env Env) showStanding(ctx context.Context, s *session, late error, output format) error {
	var f failure
	if errors.As(late, &f) && f.code != ExitNo && f.code != ExitNobody {
		return late
	}
	found, err := s.standing(ctx)
	if err != nil {
		return err
	}
	env.tellStanding(s, found, output)
	switch {
	case late == nil && !found.good():
		return failure{code: ExitNo}
	default:
		return late
	}
}
