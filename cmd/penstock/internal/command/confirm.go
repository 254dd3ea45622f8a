package command

import (
	"context"
	"errors"
	"fmt"
	"time"

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

On a terminal it shows what instances hold back and asks, unless --yes is given.
Without a terminal it does not ask.

If no instance reports that it holds anything back, nothing is confirmed, and the
exit code is 5. With --force it is confirmed anyway, for instances that do not
report.

With --wait confirm returns when no live instance reports any longer that it holds
something back.

Exit code: 0 when it was written, 1 when the answer was no or when --wait timed out,
2 for a wrong command line, 3 when etcd failed, 5 when no instance holds anything
back.

` + connection.Help,
		Example: `  penstock status --app shop
  penstock confirm --app shop
  penstock confirm --app shop --yes --wait   # in a script`,
		Args: arguments(0, 0, ""),
	}
	force := cmd.Flags().Bool("force", false, "confirm even if no instance reports that it holds anything back")
	yes := cmd.Flags().BoolP("yes", "y", false, "do not ask")
	wait := cmd.Flags().Bool("wait", false, "wait until no instance holds anything back")
	timeout := cmd.Flags().Duration("timeout", time.Minute, "how long to wait at most")
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *timeout <= 0 {
			return errTimeout
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		if !*force {
			if err := env.showHeldBack(cmd.Context(), s); err != nil {
				return err
			}
		}
		if !*yes && env.InIsTerminal && !env.ask(cmd.Context(), fmt.Sprintf("Confirm the removals in %s?", s.place())) {
			return failure{ExitNo, errors.New("nothing was confirmed")}
		}
		if err := env.confirm(cmd.Context(), s); err != nil || !*wait {
			return err
		}
		return s.awaitNothingHeldBack(cmd.Context(), *timeout)
	}
	return cmd
}

// confirm writes that the removals of documents and of lists are confirmed.
func (env Env) confirm(ctx context.Context, s *session) error {
	revision, err := request(ctx, s, func(ctx context.Context) (int64, error) { return s.store.Confirm(ctx, whoami()) })
	if err != nil {
		return err
	}
	lists, err := request(ctx, s, func(ctx context.Context) (int64, error) { return s.store.ConfirmLists(ctx, whoami()) })
	if err != nil {
		env.warn(fmt.Sprintf("removals of rules are confirmed, those of lists are not: %v", err))
	}
	fmt.Fprintf(env.Out, "%s: removals up to revision %d are confirmed\n", s.place(), max(revision, lists))
	return nil
}

// awaitNothingHeldBack waits until no instance reports that it holds something back.
func (s *session) awaitNothingHeldBack(ctx context.Context, timeout time.Duration) error {
	late := time.After(timeout)
	for {
		found, err := s.fleetStatus(ctx)
		if err != nil {
			return err
		}
		holding := countHoldingBack(found.Instances)
		if holding == 0 {
			return nil
		}
		select {
		case <-late:
			return failure{ExitNo, fmt.Errorf("after %v %s still reports something held back: see penstock status", timeout, wording.Count(holding, "instance"))}
		case <-ctx.Done():
			return s.fail(ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

// showHeldBack prints on a terminal what instances hold back. It returns an error if none
// does.
func (env Env) showHeldBack(ctx context.Context, s *session) error {
	found, err := s.fleetStatus(ctx)
	if err == nil {
		err = s.requireHeldBack(found)
	}
	if err == nil && env.InIsTerminal {
		env.printAbout(found.Instances, heldBackTexts)
	}
	return err
}

// requireHeldBack returns an error unless an instance holds something back.
func (s *session) requireHeldBack(found fleetStatus) error {
	const kept = "nothing was confirmed"
	switch reports := len(found.Instances); {
	case countHoldingBack(found.Instances) > 0:
		return nil
	case reports == 0 && found.Revision == 0:
		return failure{ExitNobody, fmt.Errorf("%s: there are no documents, and no instance reports: is that the right place? %s", s.place(), kept)}
	case reports == 0:
		return failure{ExitNobody, errors.New(noInstances + "; --force confirms for those that do not: " + kept)}
	default:
		return failure{ExitNobody, fmt.Errorf("%s: none of %s holds anything back: %s", s.place(), wording.Count(reports, "instance"), kept)}
	}
}
