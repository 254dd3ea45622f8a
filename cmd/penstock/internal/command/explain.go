package command

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rules"
)

// explanation is the result of the command.
type explanation struct {
	inspect.Explanation

	// NotApplied are rules for the resource that do not apply to the call.
	NotApplied []nearMiss `json:"notApplied,omitempty"`
}

// nearMiss is a rule for the resource of a call that does not apply to the call.
type nearMiss struct {
	inspect.Rule
	Reason string `json:"reason"`
}

func newExplain(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain RESOURCE [flags]",
		Short: "Show which rules apply to a call",
		Long: `Explain shows which rules apply to a call of the resource, in the order in which
they are checked, with their fields and their places. No call is made.

The rules are those of the documents at --rules, those in force in a running
service at --engine, or else those in etcd. A service also shows the present state
of each rule. It must serve the handler of the package inspect; --engine is its
address, as host and port or as a URL.

For documents, explain also shows the rules for the resource that do not apply to
the call, with the reason. In JSON, the window and the reset of a state are in
seconds.

Exit code: 0 with or without rules, 1 when documents have mistakes, 2 for a wrong
command line, 3 when a file, the service or etcd cannot be read.

` + connection.Help,
		Example: `  penstock explain orders:create --rules rules/ --origin mobile
  penstock explain orders:create --engine 127.0.0.1:6060
  penstock explain orders:create --app shop --output json | jq '.rules[].name'`,
		Args: arguments(1, 1, "which resource? Name the one that is called"),
	}
	var call inspect.Call
	cmd.Flags().StringVar(&call.Origin, "origin", "", "the `caller` who makes the call")
	cmd.Flags().StringArrayVar(&call.Args, "arg", nil, "an argument of the call, as a `text`; may be repeated")
	paths := cmd.Flags().StringArray("rules", nil, "the `path` of documents, as for push; may be repeated")
	engine := cmd.Flags().String("engine", "", "the `address` of a running service")
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(*paths) > 0 && *engine != "" {
			return errors.New("--rules and --engine are two places to look at: leave one out")
		}
		call.Resource = args[0]
		if err := call.Validate(); err != nil {
			return err
		}
		found, err := env.explain(cmd, call, *paths, *engine)
		switch {
		case err != nil:
			return err
		case *output == asJSON:
			env.writeJSON(found)
		default:
			env.printExplanation(found)
		}
		return nil
	}
	return cmd
}

// explain explains the call with the rules that the flags select.
func (env Env) explain(cmd *cobra.Command, call inspect.Call, paths []string, engine string) (explanation, error) {
	if engine != "" {
		e, err := askEngine(cmd.Context(), engine, call)
		return explanation{Explanation: e}, err
	}
	if len(paths) > 0 {
		c, err := env.judgeSound(cmd.Context(), paths)
		if err != nil {
			return explanation{}, err
		}
		return explainSet(c.Rules, call)
	}
	s, err := env.open(cmd)
	if err != nil {
		return explanation{}, fmt.Errorf("%w\nOther rules than those in etcd are named by --rules or --engine", err)
	}
	defer s.close()
	contents, err := s.pull(cmd.Context())
	if err != nil {
		return explanation{}, err
	}
	return explainSet(env.parseStored(contents.Documents).Rules, call)
}

// explainSet explains the call with a new engine that has the rules.
func explainSet(set rules.Set, call inspect.Call) (explanation, error) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	if err := engine.Load(set); err != nil {
		return explanation{}, failure{ExitNo, err}
	}
	found := explanation{Explanation: inspect.Explain(engine, call)}
	applied := make(map[string]bool)
	for i := range found.Rules {
		found.Rules[i].State = nil // this engine has seen no calls
		locate(&found.Rules[i], set)
		applied[found.Rules[i].Name] = true
	}
	for _, rule := range set.Flow {
		if !applied[rule.Name] && guards(rule, call.Resource) {
			miss := nearMiss{inspect.RuleOf(rule), whyNot(rule, call)}
			locate(&miss.Rule, set)
			found.NotApplied = append(found.NotApplied, miss)
		}
	}
	return found, nil
}

// locate sets the place of a rule in its document.
func locate(rule *inspect.Rule, set rules.Set) {
	at, _ := set.Position(rule.Kind, rule.Name)
	rule.Document, rule.Line, rule.Column = at.Document, at.Line, at.Column
}

// guards reports whether a valid rule is for the resource, for any origin. A rule whose
// related resource it is does not guard it, even if its pattern matches.
func guards(rule flow.Rule, resource string) bool {
	if rule.Match == "" {
		return rule.Resource == resource
	}
	pattern, err := match.Compile(rule.Match)
	return err == nil && pattern.Matches(resource) && rule.Related != resource
}
