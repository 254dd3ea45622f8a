package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// release is the state with which the command line releases what is forced.
const release = "release"

func newControl(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "control KIND STATE [flags]",
		Short: "Force the state of rules in running services, such as switching off faults",
		Long: `Control forces the state of a rule in running services, or of all rules of a kind,
those that come later too. The state stays forced until it is released with the state
release, or the service ends. A state that is forced on one rule goes before that of
its kind. What can be forced: faults to be off, breakers to be open or closed.

The services must serve the control handler of the package inspect under the path
control; --engine is the address of one, as host and port or as a URL without that
path. With several, all are asked at once, and each is reported.

Exit code: 0 when all services did it, 1 when one refused, such as for a rule that it
does not have, 2 for a wrong command line, 3 when one could not be asked.`,
		Example: `  penstock control fault off --all --engine 10.0.0.7:6060 --engine 10.0.0.8:6060
  penstock control fault release --all --engine 10.0.0.7:6060
  penstock control breaker open --rule pay-errors --engine 127.0.0.1:6060`,
		Args: arguments(2, 2, "which rules, and what state? Name a kind and a state, or release: penstock control KIND STATE"),
	}
	var c controlRequest
	cmd.Flags().StringArrayVar(&c.engines, "engine", nil, "the `address` of a running service; may be repeated")
	cmd.Flags().StringVar(&c.rule, "rule", "", "force the state of the rule of this `name`")
	cmd.Flags().BoolVar(&c.all, "all", false, "force the state of all rules of the kind")
	tokenFile := cmd.Flags().String("token-file", "", "the `file` with the token of the control handlers, if they need one")
	output := formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.kind, c.state = args[0], args[1]
		if *tokenFile != "" {
			token, err := os.ReadFile(*tokenFile)
			if err != nil {
				return fmt.Errorf("--token-file: %w", err)
			}
			if c.token = strings.TrimSpace(string(token)); c.token == "" {
				return fmt.Errorf("--token-file: %s is empty: write the token into it", *tokenFile)
			}
		}
		if err := c.check(); err != nil {
			return err
		}
		return env.control(cmd.Context(), c, *output)
	}
	return cmd
}

// controlRequest is what the command line asks for.
type controlRequest struct {
	kind, state, rule string
	all               bool
	engines           []string
	token             string // "" for none
}

func (c controlRequest) check() error {
	switch {
	case len(c.engines) == 0:
		return errors.New("--engine is missing: name the running service")
	case c.rule == "" && !c.all:
		return fmt.Errorf("which rules? Name one with --rule, or say --all for all rules of the kind %s", c.kind)
	case c.rule != "" && c.all:
		return errors.New("--rule and --all contradict each other: leave one out")
	case c.state == "":
		return errors.New("the state is empty: name one, or release")
	}
	for _, address := range c.engines {
		if _, err := engineURL(address); err != nil {
			return err
		}
	}
	return nil
}

// form returns the request as the control handler takes it.
func (c controlRequest) form() url.Values {
	form := url.Values{"kind": {c.kind}, "state": {c.state}}
	if c.state == release {
		form.Set("state", "")
	}
	if !c.all {
		form.Set("rule", c.rule)
	}
	return form
}

// done says what a service has done.
func (c controlRequest) done() string {
	what := fmt.Sprintf("%s rule %q is", c.kind, c.rule)
	if c.all {
		what = fmt.Sprintf("all rules of kind %s are", c.kind)
	}
	if c.state == release {
		return what + " released"
	}
	return what + " forced to be " + c.state
}

// controlled is what came of the request to one service.
type controlled struct {
	Engine string `json:"engine"`
	Error  string `json:"error,omitempty"` // why it was not done; "" if it was

	code int
}

// control asks all services at once, and prints what came of it.
func (env Env) control(ctx context.Context, c controlRequest, output format) error {
	results := make([]controlled, len(c.engines))
	var all sync.WaitGroup
	for i, address := range c.engines {
		all.Go(func() { results[i] = c.ask(ctx, address) })
	}
	all.Wait()
	if output == asJSON {
		env.writeJSON(results)
	}
	code := ExitDone
	for _, r := range results {
		code = max(code, r.code)
		switch {
		case output == asJSON:
		case r.Error == "":
			fmt.Fprintf(env.Out, "%s: %s\n", r.Engine, c.done())
		default:
			fmt.Fprintf(env.Err, "penstock: %s: %s\n", r.Engine, r.Error)
		}
	}
	if code != ExitDone {
		return failure{code: code}
	}
	return nil
}

// ask asks one service.
func (c controlRequest) ask(ctx context.Context, address string) controlled {
	at, err := engineURL(address)
	if err != nil {
		return controlled{address, err.Error(), ExitUsage}
	}
	result := controlled{Engine: at.Host}
	at = at.JoinPath("control")
	err = exchange(ctx, http.MethodPost, at, c.token, strings.NewReader(c.form().Encode()), nil)
	if err == nil {
		return result
	}
	result.Error, result.code = err.Error(), ExitFailed
	if refused, ok := errors.AsType[refusedError](err); ok && refused.status == http.StatusUnprocessableEntity {
		result.Error, result.code = refused.why, ExitNo
	}
	return result
}
