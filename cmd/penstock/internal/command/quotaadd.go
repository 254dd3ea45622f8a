package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

const quotaAddLong = `Add recharges a balance, that of a rule with algorithm prepaid: it adds TOKENS, and
prints how many are left. A number below 0 takes some off: write it behind --, as in
-- -50. 0 asks what is left.

--attr, or --key, names the value whose balance it is, of a rule that has one for each:
--key acme is short for --attr with the only attribute that the rule looks at. --resource
names the resource of a rule with a pattern that has a balance for each one.

A balance of the whole fleet (scope: fleet) is kept by the store, and any one service can
add to it. Else each service has balances of its own, which end when it ends.

The service must serve the control handler of the package inspect under the path control.
Nothing is tried again: if there is no answer, tokens may have been added, so look at what
is left before you add them once more.

Exit code: 0 when it was done, 1 when the service refused, such as for a rule that has no
balance, 2 for a wrong command line, 3 when there is no answer.

`

const quotaAddExample = `  penstock quota add --engine 10.0.0.7:6060 --rule credit --attr tenant=acme 1000
  penstock quota add --engine 10.0.0.7:6060 --rule credit --key acme --reason 'invoice 4711' 1000
  penstock quota add --engine 10.0.0.7:6060 --rule credit --key acme -- -50`

func newQuotaAdd(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "add TOKENS [flags]",
		Short:   "Recharge a balance in a running service",
		Long:    quotaAddLong,
		Example: quotaAddExample,
		Args:    arguments(1, 1, "how many tokens? penstock quota add TOKENS"),
	}
	var a quotaAddition
	cmd.Flags().StringVar(&a.engine, "engine", "", "the `address` of a running service")
	cmd.Flags().StringVar(&a.rule, "rule", "", "the `name` of the rule")
	cmd.Flags().StringVar(&a.kind, "kind", "", "the `kind` of the rule, if rules of several kinds have its name")
	cmd.Flags().StringArrayVar(&a.attributes, "attr", nil, "the value whose balance it is, as `key=value`; once for each key of the rule")
	cmd.Flags().StringVar(&a.key, "key", "", "the `value` whose balance it is, of a rule that looks at one attribute")
	cmd.Flags().StringVar(&a.origin, "origin", "", "the `caller`, if the rule looks at the origin")
	cmd.Flags().StringVar(&a.resource, "resource", "", "the `resource`, of a rule that has a balance for each")
	cmd.Flags().StringVar(&a.reason, "reason", "", "`why`, for others to read")
	cmd.Flags().StringVar(&a.by, "by", "", "`who` does it, beside the address; by default the user of the environment")
	tokenFile := cmd.Flags().String("token-file", "", "the `file` with the token of the control handler, if it needs one")
	output := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.by = cmp.Or(a.by, env.Getenv("USER"), env.Getenv("LOGNAME"))
		if err := a.read(args[0]); err != nil {
			return err
		}
		var err error
		if a.token, err = readToken("--token-file", *tokenFile); err != nil {
			return err
		}
		return env.addQuota(cmd.Context(), a, *output)
	}
	return cmd
}

// quotaAddition is what the command line asks for.
type quotaAddition struct {
	engine, rule, kind    string
	attributes            []string
	key, origin, resource string
	by, reason, token     string

	tokens int64
}

// read reads the tokens, and finds mistakes.
func (a *quotaAddition) read(tokens string) (err error) {
	if a.tokens, err = strconv.ParseInt(tokens, 10, 64); err != nil {
		return fmt.Errorf("%s is no whole number of tokens", rule.Quote(tokens))
	}
	switch {
	case a.engine == "":
		return errors.New("--engine is missing: name a running service")
	case a.rule == "":
		return errors.New("--rule is missing: name the rule that has the balance")
	case a.key != "" && len(a.attributes) > 0:
		return errors.New("--key and --attr name the same: leave one out")
	}
	if _, err := inspect.ParseAttributes(a.attributes); err != nil {
		return fmt.Errorf("--attr: %w", err)
	}
	_, err = engineURL(a.engine)
	return err
}

// form returns the request as the control handler takes it.
func (a *quotaAddition) form() url.Values {
	attributes, _ := inspect.ParseAttributes(a.attributes) // read has found the mistakes
	form := inspect.Call{Origin: a.origin, Attributes: attributes}.Query()
	form.Set("rule", a.rule)
	form.Set("action", "recharge")
	form.Set("tokens", strconv.FormatInt(a.tokens, 10))
	for field, text := range map[string]string{"by": a.by, "reason": a.reason} {
		if text != "" {
			form.Set(field, text[:min(len(text), maxControlText)])
		}
	}
	for field, text := range map[string]string{"resource": a.resource, "key": a.key, "kind": a.kind} {
		if form.Del(field); text != "" {
			form.Set(field, text)
		}
	}
	return form
}

// addQuota recharges a balance, and prints what is left.
func (env Env) addQuota(ctx context.Context, a quotaAddition, output format) error {
	at, err := engineURL(a.engine)
	if err != nil {
		return err
	}
	var done inspect.Recharged
	err = exchange(ctx, http.MethodPost, at.JoinPath("control"), a.token, strings.NewReader(a.form().Encode()), &done)
	if refused, ok := errors.AsType[refusedError](err); ok && refused.status == http.StatusUnprocessableEntity {
		return failure{ExitNo, errors.New(refused.why)}
	}
	if err != nil {
		return failure{ExitFailed, fmt.Errorf("asking the engine at %s: %w", at.Host, err)}
	}
	if output == asJSON {
		env.writeJSON(done)
	} else {
		fmt.Fprintf(env.Out, "%d left\n", done.Left)
	}
	return nil
}
