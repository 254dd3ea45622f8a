package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
)

const quotaLong = `Quota shows the limits of running services on how much passes in a time: how much of
each is used, what is left, and when there will be more. --rule and --kind select some.
What a bucket lacks of being full is used; of a limit for all instances together, with
fleet.mode ask or window, what all of them have used. Throttles, and leases and shares of
such a limit, tell what is left only.

Rules with a limit for each value, such as each tenant of a hotParam rule, are shown for
the value that --attr names, once for each attribute that the rule looks at; without it
they are left out. Of a limit for all instances together each service tells what it
knows: with fleet.mode ask what the store answered last, else what it has leased.

Of balances, of rules with algorithm prepaid, it shows what is left; penstock quota add
recharges them.

The services must serve the handler of the package inspect; --engine is its address, as
host and port or as a URL. With --app the services are the instances that report an
address to etcd (Options.Inspect).

Exit code: 0 when all services have answered, 1 when one does not have the rule, or it
looks at other attributes, 2 for a wrong command line, 3 when one could not be asked.

`

const quotaExample = `  penstock quota --engine 127.0.0.1:6060
  penstock quota --rule plan --attr tenant=acme --app shop
  penstock quota add --engine 10.0.0.7:6060 --rule credit --attr tenant=acme 1000
  penstock quota --rule contract --engine 10.0.0.7:6060 -o json | jq '.[0].quotas[0].remaining'`

func newQuota(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "quota [flags]",
		Short:   "Show what is used and left of limits in running services",
		Long:    quotaLong + connection.Help,
		Example: quotaExample,
		Args:    arguments(0, 0, ""),
	}
	var q quotaRequest
	q.addFlag(cmd)
	cmd.Flags().StringVar(&q.query.Rule, "rule", "", "only the limits of the rule of this `name`")
	cmd.Flags().StringVar((*string)(&q.query.Kind), "kind", "", "only those of rules of this `kind`")
	cmd.Flags().StringVar(&q.query.Origin, "origin", "", "the `caller`, for rules that look at the origin")
	attributes := cmd.Flags().StringArray("attr", nil, "the value to show of rules with a limit for each, as `key=value`; may be repeated")
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.AddCommand(newQuotaAdd(env))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if q.query.Attributes, err = inspect.ParseAttributes(*attributes); err != nil {
			return fmt.Errorf("--attr: %w", err)
		}
		if err := q.check(cmd); err != nil {
			return err
		}
		if err := q.findNamed(env, cmd); err != nil {
			return err
		}
		return env.quota(cmd.Context(), q, *output)
	}
	return cmd
}

// quotaRequest is what the command line asks for.
type quotaRequest struct {
	services

	query inspect.RuleQuery
}

// quotaAnswer is what one service has said.
type quotaAnswer struct {
	Engine string `json:"engine"`
	Error  string `json:"error,omitempty"` // why it has not answered

	*inspect.Quotas

	code int
}

// quota asks all services at once, and prints what they say.
func (env Env) quota(ctx context.Context, q quotaRequest, output format) error {
	answers := askEach(ctx, q.engines, q.ask)
	code := ExitDone
	for _, a := range answers {
		code = max(code, a.code)
	}
	if output == asJSON {
		env.writeJSON(answers)
	} else {
		env.printQuotas(answers)
	}
	for _, name := range q.silent {
		env.warn(name + " is not asked: it reports no address of its inspect handler")
	}
	if code != ExitDone {
		return failure{code: code}
	}
	return nil
}

// ask asks one service.
func (q quotaRequest) ask(ctx context.Context, address string) quotaAnswer {
	a := quotaAnswer{Engine: shownAddress(address), Quotas: new(inspect.Quotas)}
	err := askEngine(ctx, address, "quotas", q.query.Query(), a.Quotas)
	if err == nil {
		return a
	}
	a.Error, a.Quotas, a.code = err.Error(), nil, ExitFailed
	if refused, ok := errors.AsType[refusedError](err); ok && refused.status == http.StatusUnprocessableEntity {
		a.Error, a.code = refused.why, ExitNo
	}
	return a
}

// printQuotas prints a table of the limits, with a column for the services if there are several.
func (env Env) printQuotas(answers []quotaAnswer) {
	table := newTable(env.Out)
	several, rows := len(answers) > 1, 0
	cells := func(engine string, row ...any) {
		if several {
			fmt.Fprint(table, engine, "\t")
		}
		fmt.Fprintf(table, "%v\t%v\t%v\t%v\t%v\t%v\t%v\t%v\n", row...)
	}
	for _, a := range answers {
		if a.Quotas == nil {
			continue
		}
		for i := range a.Quotas.Quotas {
			if rows++; rows == 1 {
				cells("ENGINE", "RULE", "KIND", "RESOURCE", "VALUE", "LIMIT", "USED", "LEFT", "MORE IN")
			}
			s := &a.Quotas.Quotas[i]
			cells(wording.Cell(a.Engine), wording.Cell(s.Rule), s.Kind, cmp.Or(wording.Cell(s.Resource), "-"), cmp.Or(wording.Cell(s.Value), "-"),
				limitText(s), usedText(s), leftText(&s.Quota), moreText(s))
		}
	}
	_ = table.Flush()
	for _, a := range answers {
		switch {
		case a.Error != "":
			fmt.Fprintf(env.Err, "penstock: %s: %s\n", wording.Cell(a.Engine), wording.Printable(a.Error))
		case a.MoreQuotas > 0:
			env.warn(fmt.Sprintf("%s has %d more: select some with --rule", wording.Cell(a.Engine), a.MoreQuotas))
		case len(a.Quotas.Quotas) == 0:
			fmt.Fprintf(env.Out, "%s: no such limits; those for each value are shown with --attr\n", wording.Cell(a.Engine))
		}
	}
}

// usedText is what a window has counted.
func usedText(s *inspect.QuotaState) string {
	if s.Used == nil {
		return "-"
	}
	return decimal(*s.Used)
}

// leftText returns what is left of a limit; "?" if the instance does not know.
func leftText(q *inspect.Quota) string {
	if q.Unknown {
		return "?"
	}
	return strconv.FormatInt(q.Remaining, 10)
}

// limitText is a limit with its window, and what is special about it.
func limitText(s *inspect.QuotaState) string {
	text := strconv.FormatFloat(s.Limit, 'f', -1, 64)
	if s.Prepaid {
		text = "prepaid"
	} else {
		text += " per " + duration(s.Window).String()
	}
	switch {
	case s.Off:
		text += " (off)"
	case s.Shadow:
		text += " (shadow)"
	case s.Fleet:
		text += " (fleet)"
	}
	return text
}

// moreText says when there is more.
func moreText(s *inspect.QuotaState) string {
	if s.Reset <= 0 {
		return "-"
	}
	text := duration(s.Reset).Round(time.Millisecond).String()
	if s.Reset >= 3600 {
		text += " (" + dateTime(s.ResetsAt) + ")"
	}
	return text
}
