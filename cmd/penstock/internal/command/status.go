package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/inspect"
)

// present is the value of --wait for the revision that is in etcd now.
const present = "present"

const statusLong = `Status shows the revision in etcd and, for every live instance that reports, the
revision it runs, how many documents and rules it has, and which documents it
rejected and why. An instance is behind unless it has read exactly the documents
that are in etcd, in their present versions, and on a copy if it could not read etcd
since its start. An instance that holds a change back, because it removes too many
rules at once, waits for penstock confirm. An instance has other lists if one is of
another digest than in etcd. Times are UTC.

Then it asks each instance at the address of its inspect handler that it reports
(Options.Inspect), and says which did not answer, what operators have forced or
switched off, and which sources are not in order. With --stored, and with --wait, it
shows only what stands in etcd. With --rule it shows the rules of that name in all
instances.

With --wait it first waits until every live instance has read the documents that
are in etcd, with --wait=REVISION not before they have reached that revision. With
--min-instances it waits until so many have; 0 means that there may be none. It warns
of instances that report no longer and had not come to the revision: they were
replaced, or hang with the rules of before; with --strict it then exits with 1.

It warns of rules whose resource, origin or attributes no live instance has ever
seen, as if a name is misspelled; with --strict it then exits with 1.

With --engine it shows the state of a running service instead: its sources, its
lists, and the state of rules that have one, with the values of attributes that they
have seen most often of late, such as users. With --rule it shows only the rules of
that name. The service must serve the handler of the package inspect; --engine is
its address, as host and port or as a URL. With several --engine all services are
asked at once and shown one after the other; JSON is then a list.

Exit code: 0 when all instances are up to date (or, without --wait, none reports),
1 when one is behind, on a copy, holds a change back, has rejected documents or lists,
has other lists than etcd, or lacks one that rules in force name, or when there are
fewer than --min-instances, 2 for a wrong command line, 3 when etcd, the service or
an instance failed to answer, 5 when --wait found no instance to wait for.

` + connection.Help

func newStatus(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show which instances run which revision, or the state of one instance",
		Long:  statusLong,
		Example: `  penstock status --app shop
  penstock status --app shop --wait --timeout 30s
  penstock status --app shop --wait=57 --output json
  penstock status --engine 127.0.0.1:6060`,
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 && cmd.Flags().Changed("wait") {
			return fmt.Errorf("unexpected argument %q: a revision to wait for is joined to the flag: --wait=%s", args[0], args[0])
		}
		return arguments(0, 0, "")(cmd, args)
	}
	wait := cmd.Flags().String("wait", "", "first wait until all instances are at this `revision`")
	cmd.Flags().Lookup("wait").NoOptDefVal = present
	var p waitOptions
	addWaitFlags(cmd, &p)
	var one engineStatusOptions
	cmd.Flags().StringArrayVar(&one.engines, "engine", nil, "show the state of the running service at this `address`; may be repeated")
	cmd.Flags().StringVar(&one.rule, "rule", "", "show only the rules of this `name`")
	stored := cmd.Flags().Bool("stored", false, "show what stands in etcd, and ask no instance")
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case len(one.engines) > 0:
			if err := one.check(cmd); err != nil {
				return err
			}
			return env.engineStatus(cmd.Context(), one, *output)
		case one.rule != "":
			return env.ruleStatus(cmd, one, *output)
		}
		return env.fleetStatus(cmd, *wait, p, !*stored && *wait == "", *output)
	}
	return cmd
}

// fleetStatus prints the status of all instances, after it has waited for the revision
// that --wait names; "" for none. With ask it asks the instances, too.
func (env Env) fleetStatus(cmd *cobra.Command, wait string, p waitOptions, ask bool, output format) error {
	var wanted int64
	if wait != "" && wait != present {
		var err error
		if wanted, err = parseRevision(wait); err != nil {
			return err
		}
	}
	if err := p.check(cmd, wait != ""); err != nil {
		return err
	}
	s, err := env.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	var late error
	if wait != "" {
		late = env.awaitWanted(cmd.Context(), s, wanted, p)
	}
	return env.showStatus(cmd.Context(), s, late, p.strict, ask, output)
}

// ruleStatus prints the rules of one name in all instances that report an address.
func (env Env) ruleStatus(cmd *cobra.Command, one engineStatusOptions, output format) error {
	for _, flag := range []string{"wait", "min-instances", "timeout", "strict", "stored"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--rule asks running services, and --%s does not: leave one out", flag)
		}
	}
	var found services
	if err := found.find(env, cmd); err != nil {
		return err
	}
	one.engines = found.engines
	err := env.engineStatus(cmd.Context(), one, output)
	for _, name := range found.silent {
		env.warn(name + " is not asked: it reports no address of its inspect handler")
	}
	return err
}

// showStatus prints the status after a wait, whose error is late. It returns an error
// unless all instances are up to date, answer if they are asked, and, with strict, have seen calls for all
// rules.
func (env Env) showStatus(ctx context.Context, s *session, late error, strict, ask bool, output format) error {
	var f failure
	if errors.As(late, &f) && f.code != ExitNo && f.code != ExitNobody {
		return late
	}
	found, err := s.fleetStatus(ctx)
	if err != nil {
		return err
	}
	if ask {
		found.answers = askInstances[inspect.Status](ctx, found.Instances, "status", nil)
	}
	env.printStatus(s, found, output)
	silent := tellMissing(env, found.Instances, found.answers)
	unmatched := env.warnOfUnmatched(unmatchedBy(found.Instances, anyDocument), strict)
	switch {
	case late != nil:
		return late
	case silent != nil:
		return silent
	case !found.upToDate():
		return failure{code: ExitNo}
	default:
		return unmatched
	}
}
