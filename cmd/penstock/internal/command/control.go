package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

// release is the state with which the command line releases what is forced.
const release = "release"

const controlLong = `Control forces the state of a rule in running services, or of all rules of a kind,
those that come later too. The state stays forced until it is released with the state
release, or the service ends. A state that is forced on one rule goes before that of
its kind. What can be forced: faults to be off, breakers to be open or closed.

Rules of every kind are switched off, so that a wrong one lets calls pass and counts
those that it would have refused, by what comes first: rule NAME, kind KIND, resource
NAME, or engine for all rules; then off, on or release. The narrowest counts: on has
rules act although something broader is off. It survives changes of rules, and needs
no etcd. --for has a switch, or a forced state, end by itself.

With --attr it acts on one value of a rule that has a limit for each value, such as one
user of a hotParam rule, in place of a state: show prints what the rule knows of the
value, reset makes it as new, lift ends its penalty. The limit of a whole fleet cannot be
reset; what is shown of it is what each service knows.

The services must serve the control handler of the package inspect under the path
control; --engine is the address of one, as host and port or as a URL without that
path. With several, all are asked at once, and each is reported. With --app they are
the instances that report an address to etcd (Options.Inspect), which must serve the
handlers at its root: no other address is asked, and no redirect followed.

Exit code: 0 when all services did it, 1 when one refused, such as for a rule that it
does not have, 2 for a wrong command line, 3 when one could not be asked.

`

const controlExample = `  penstock control rule per-user off --for 10m --reason 'wrong limit' --app shop
  penstock control resource orders:create release --engine 10.0.0.7:6060
  penstock control fault off --all --engine 10.0.0.7:6060 --engine 10.0.0.8:6060
  penstock control fault release --all --engine 10.0.0.7:6060
  penstock control breaker open --rule pay-errors --engine 127.0.0.1:6060
  penstock control hotParam reset --rule per-user --attr user=alice --engine 127.0.0.1:6060`

func newControl(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "control KIND STATE [flags]",
		Short:   "Force the state of rules in running services, such as switching off faults",
		Long:    controlLong + connection.Help,
		Example: controlExample,
		Args:    arguments(2, 3, "which rules, and what state? Name a kind and a state, or release: penstock control KIND STATE"),
	}
	var c controlRequest
	c.addFlag(cmd)
	cmd.Flags().StringVar(&c.rule, "rule", "", "force the state of the rule of this `name`")
	cmd.Flags().BoolVar(&c.all, "all", false, "force the state of all rules of the kind")
	cmd.Flags().StringArrayVar(&c.attributes, "attr", nil, "act on the value with this attribute, as `key=value`; once for each key of the rule")
	cmd.Flags().StringVar(&c.origin, "origin", "", "act on the value of this `caller`, if the rule looks at the origin")
	kind := cmd.Flags().String("kind", "", "the `kind` of the rule that is switched, if rules of several kinds have its name")
	cmd.Flags().DurationVar(&c.duration, "for", 0, "how long: it then ends by itself; without it, until it is released")
	cmd.Flags().StringVar(&c.reason, "reason", "", "`why`, for others to read")
	cmd.Flags().StringVar(&c.by, "by", "", "`who` does it, beside the address; by default the user of the environment")
	tokenFile := cmd.Flags().String("token-file", "", "the `file` with the token of the control handlers, if they need one")
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.read(args, *kind); err != nil {
			return err
		}
		c.by = cmp.Or(c.by, env.Getenv("USER"), env.Getenv("LOGNAME"))
		var err error
		if c.token, err = readToken("--token-file", *tokenFile); err != nil {
			return err
		}
		if err := c.check(cmd); err != nil {
			return err
		}
		if err := c.findNamed(env, cmd); err != nil {
			return err
		}
		return env.control(cmd.Context(), c, *output)
	}
	return cmd
}

// controlRequest is what the command line asks for.
type controlRequest struct {
	services

	kind, state, rule string
	all               bool
	attributes        []string // of the value that is acted on; none for a state
	origin            string

	scope      string // of a switch: rule, kind, resource or engine; "" for a state
	name       string // of what is switched
	by, reason string
	at         time.Time // when it is given, for all services
	duration   time.Duration
	token      string // "" for none
}

func (c controlRequest) check(cmd *cobra.Command) error {
	switch {
	case c.duration < 0:
		return fmt.Errorf("--for is %v: leave it out for until it is released", c.duration)
	case c.scope != "" && (c.rule != "" || c.all || c.ofValue()):
		return fmt.Errorf("--rule, --all, --attr and --origin are not for %s: name what is switched behind it", c.scope)
	case c.scope != "":
		return c.services.check(cmd)
	case c.rule == "" && !c.all:
		return fmt.Errorf("which rules? Name one with --rule, or say --all for all rules of the kind %s", c.kind)
	case c.rule != "" && c.all:
		return errors.New("--rule and --all contradict each other: leave one out")
	case c.state == "":
		return errors.New("the state is empty: name one, or release")
	case c.ofValue() && c.all:
		return errors.New("--attr is for one rule: name it with --rule")
	case !c.ofValue() && c.isAction():
		return fmt.Errorf("which value? %s is for one value of a rule: say it with --attr, as in --attr user=alice", c.state)
	case c.ofValue() && !c.isAction():
		return fmt.Errorf("%q cannot be done to a value: there are show, reset and lift", c.state)
	}
	if _, err := inspect.ParseAttributes(c.attributes); err != nil {
		return fmt.Errorf("--attr: %w", err)
	}
	return c.services.check(cmd)
}

// What is asked of a value: what rules know of it, or what is done to it.
const (
	show        = "show"
	resetValue  = "reset"
	liftPenalty = "lift"
)

// ofValue says whether the request is about one value of a rule.
func (c controlRequest) ofValue() bool { return len(c.attributes) > 0 || c.origin != "" }

// isAction says whether the state is what is done to a value.
func (c controlRequest) isAction() bool {
	return slices.Contains([]string{show, resetValue, liftPenalty}, c.state)
}

// value returns which value the request is about.
func (c controlRequest) value() inspect.RuleQuery {
	attributes, _ := inspect.ParseAttributes(c.attributes) // check has found the mistakes
	return inspect.RuleQuery{Kind: rule.Kind(c.kind), Rule: c.rule, Origin: c.origin, Attributes: attributes}
}

// form returns the request as the control handler takes it.
func (c controlRequest) form() url.Values {
	if c.ofValue() {
		form := c.value().Query()
		form.Set("action", c.state)
		return form
	}
	form, what := url.Values{}, "state"
	if c.scope == "" {
		form.Set("kind", c.kind)
		if !c.all {
			form.Set("rule", c.rule)
		}
	} else {
		what = "switch"
		form.Set(c.scope, c.name)
		form.Set("at", strconv.FormatInt(c.at.UnixNano(), 10))
		if c.kind != "" {
			form.Set("kind", c.kind)
		}
	}
	form.Set(what, c.state)
	if c.state == release {
		form.Set(what, "")
	}
	for field, text := range map[string]string{"by": c.by, "reason": c.reason} {
		if text != "" {
			form.Set(field, text[:min(len(text), maxControlText)])
		}
	}
	if c.duration > 0 {
		form.Set("for", c.duration.String())
	}
	return form
}

// done says what a service has done.
func (c controlRequest) done() string {
	if c.scope != "" {
		return c.switched()
	}
	what := fmt.Sprintf("%s rule %q is", c.kind, c.rule)
	if c.all {
		what = fmt.Sprintf("all rules of kind %s are", c.kind)
	}
	switch {
	case c.state == resetValue:
		return fmt.Sprintf("the value is as new for %s rule %q", c.kind, c.rule)
	case c.state == liftPenalty:
		return fmt.Sprintf("the value has no penalty for %s rule %q", c.kind, c.rule)
	case c.state == release:
		return what + " released"
	}
	return what + " forced to be " + c.state
}

// controlled is what came of the request to one service.
type controlled struct {
	Engine string `json:"engine"`
	Error  string `json:"error,omitempty"` // why it was not done; "" if it was

	// States is what the service knows of a value, if that was asked.
	States []inspect.ValueState `json:"states,omitempty"`

	code int
}

// control asks all services at once, and prints what came of it.
func (env Env) control(ctx context.Context, c controlRequest, output format) error {
	c.at = time.Now()
	results := askEach(ctx, c.engines, c.ask)
	for _, name := range c.silent {
		results = append(results, controlled{Engine: name, Error: "its report in etcd has no address of its inspect handler", code: ExitFailed})
	}
	if output == asJSON {
		env.writeJSON(results)
	}
	code := ExitDone
	for _, r := range results {
		code = max(code, r.code)
		switch {
		case output == asJSON:
		case r.Error == "" && c.state == show:
			env.showValue(r)
		case r.Error == "":
			fmt.Fprintf(env.Out, "%s: %s\n", r.Engine, c.done())
		default:
			fmt.Fprintf(env.Err, "penstock: %s: %s\n", wording.Cell(r.Engine), wording.Printable(r.Error))
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
		return controlled{Engine: address, Error: err.Error(), code: ExitUsage}
	}
	result := controlled{Engine: at.Host}
	if c.state == show {
		var values inspect.Values
		at = at.JoinPath("value")
		at.RawQuery = c.value().Query().Encode()
		err = exchange(ctx, http.MethodGet, at, c.token, http.NoBody, &values)
		result.States = values.States
	} else {
		at = at.JoinPath("control")
		err = exchange(ctx, http.MethodPost, at, c.token, strings.NewReader(c.form().Encode()), nil)
	}
	if err == nil {
		return result
	}
	result.Error, result.code = err.Error(), ExitFailed
	if refused, ok := errors.AsType[refusedError](err); ok && refused.status == http.StatusUnprocessableEntity {
		result.Error, result.code = refused.why, ExitNo
	}
	return result
}

// showValue prints what a service knows of a value.
func (env Env) showValue(r controlled) {
	if len(r.States) == 0 {
		fmt.Fprintf(env.Out, "%s: the value has used nothing\n", r.Engine)
	}
	for _, s := range r.States {
		fmt.Fprintf(env.Out, "%s: %s\n", r.Engine, wording.Printable(strings.Join(factsOf(s), ", ")))
	}
}

// factsOf returns what is known of a value, for people.
func factsOf(s inspect.ValueState) (facts []string) {
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	what := s.Value
	if s.Resource != "" {
		what += " at " + s.Resource
	}
	if s.Instance {
		what += " (of the fleet, as far as this instance knows)"
	}
	if s.Used != nil {
		add("%s: used %.3g", what, *s.Used)
	} else {
		add("%s", what)
	}
	if s.Quota != nil {
		add("%s remaining", leftText(s.Quota))
		if s.Reset > 0 {
			add("more in %v", secondsOf(s.Reset))
		}
	}
	if s.InFlight != nil {
		add("%d of %d calls under way", *s.InFlight, s.Places)
	}
	if s.Penalty > 0 {
		add("refused for %v", secondsOf(s.Penalty))
	}
	return facts
}

func secondsOf(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
