package command

import (
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// explanation is the result of the command.
type explanation struct {
	inspect.Explanation

	// NotApplied are rules for the resource that do not apply to the call.
	NotApplied []nearMiss `json:"notApplied,omitempty"`

	// Instances say what they have in force, if they were asked.
	Instances []instanceExplanation `json:"instances,omitempty"`
}

// nearMiss is a rule for the resource of a call that does not apply to the call.
type nearMiss struct {
	inspect.Rule
	Reason string `json:"reason"`
}

const explainHelp = `Explain shows which rules apply to a call of the resource, in the order in which
they are checked, with their fields and their places. No call is made.

The rules are those of the documents at --rules, those in force in a running
service at --engine, or else those in etcd. A service also shows the present state
of each rule. It must serve the handler of the package inspect; --engine is its
address, as host and port or as a URL.

With the documents in etcd it also asks all instances, at the addresses that they
report (Options.Inspect), and shows the present state of each rule in each of them, or
that an instance did not answer. With --stored it asks none.

Rules may look at attributes of the call, such as who the user is: --attr says which
it has. A value is text unless it is a whole number, true or false; in double quotes
it is always text: --attr 'id="7"'. Adapters give only text. For such rules a service
also shows when the call passes, and the values that are called most.

For documents, explain also shows the rules for the resource that do not apply to
the call, with the reason. In JSON, the window and the reset of a state are in
seconds.

Exit code: 0 with or without rules, 1 when documents have mistakes, 2 for a wrong
command line, 3 when a file, the service, an instance or etcd cannot be read.

`

func newExplain(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain RESOURCE [flags]",
		Short: "Show which rules apply to a call",
		Long:  explainHelp + connection.Help,
		Example: `  penstock explain orders:create --rules rules/ --origin mobile
  penstock explain orders:create --engine 127.0.0.1:6060 --attr user=alice
  penstock explain orders:create --app shop --output json | jq '.rules[].name'`,
		Args: arguments(1, 1, "which resource? Name the one that is called"),
	}
	var call inspect.Call
	cmd.Flags().StringVar(&call.Origin, "origin", "", "the `caller` who makes the call")
	attributes := cmd.Flags().StringArray("attr", nil, "an attribute of the call, as `key=value`: 7 is a number, true a boolean, \"7\" in quotes a text; may be repeated")
	paths := cmd.Flags().StringArray("rules", nil, "the `path` of documents, as for push; may be repeated")
	lists := listsFlag(cmd)
	engine := cmd.Flags().String("engine", "", "the `address` of a running service")
	stored := cmd.Flags().Bool("stored", false, "explain the documents in etcd only, and ask no instance")
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkPlaces(*paths, *engine, *lists); err != nil {
			return err
		}
		if *stored && (len(*paths) > 0 || *engine != "") {
			return errors.New("--stored is for documents in etcd: leave it out")
		}
		call.Resource = args[0]
		var err error
		if call.Attributes, err = inspect.ParseAttributes(*attributes); err != nil {
			return err
		}
		if err := call.Validate(); err != nil {
			return err
		}
		if len(*paths) == 0 && *engine == "" {
			return env.explainStored(cmd, call, *lists, !*stored, *output)
		}
		found, err := env.explain(cmd, call, *paths, *engine, *lists)
		if err != nil {
			return err
		}
		env.showExplanation(found, *output)
		return nil
	}
	return cmd
}

// checkPlaces returns an error if the flags name two places to look at.
func checkPlaces(paths []string, engine, lists string) error {
	switch {
	case len(paths) > 0 && engine != "":
		return errors.New("--rules and --engine are two places to look at: leave one out")
	case lists != "" && engine != "":
		return errors.New("a service at --engine has lists of its own: leave --lists out")
	default:
		return nil
	}
}

func (env Env) showExplanation(found explanation, output format) {
	if output == asJSON {
		env.writeJSON(found)
	} else {
		env.printExplanation(found)
	}
}

// explain explains the call with the rules of documents, or of a running service.
func (env Env) explain(cmd *cobra.Command, call inspect.Call, paths []string, engine, lists string) (explanation, error) {
	if engine != "" {
		var e explanation
		err := askEngine(cmd.Context(), engine, "explain", call.Query(), &e.Explanation)
		return e, err
	}
	registry, err := env.readLists(cmd.Context(), lists)
	if err != nil {
		return explanation{}, err
	}
	c, err := env.judgeSound(cmd.Context(), paths, documents.Mistakes)
	if err != nil {
		return explanation{}, err
	}
	if lists != "" {
		env.warnOfLists(c.Rules, registry, lists)
	}
	return env.explainSet(c.Rules, registry, call)
}

// explainSet explains the call with a new engine that has the rules and the lists.
func (env Env) explainSet(set rules.Set, lists *list.Registry, call inspect.Call) (explanation, error) {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler), Lists: lists, Kinds: env.Kinds})
	defer engine.Close()
	if err := engine.Load(set); err != nil {
		return explanation{}, failure{ExitNo, err}
	}
	found := explanation{Explanation: inspect.Explain(engine, call)}
	applied := make(map[rule.Key]bool)
	for i := range found.Rules {
		found.Rules[i].State = nil // this engine has seen no calls
		locate(&found.Rules[i], set)
		applied[rule.Key{Kind: found.Rules[i].Kind, Name: found.Rules[i].Name}] = true
	}
	for r := range set.All() {
		if !applied[r.Key()] && guards(r.Target(), call.Resource) {
			miss := nearMiss{inspect.RuleOf(r), whyNot(r.Target(), call)}
			locate(&miss.Rule, set)
			found.NotApplied = append(found.NotApplied, miss)
		}
	}
	return found, nil
}

// locate tells where a rule of the set stands.
func locate(of *inspect.Rule, set rules.Set) {
	at, _ := set.Position(of.Kind, of.Name)
	of.Document, of.Line, of.Column = at.Document, at.Line, at.Column
}

// guards says whether a sound rule is one on the resource, whoever calls. One that
// relates to the resource is not, though it may match.
func guards(target rule.Target, resource string) bool {
	if target.Match == "" {
		return target.Resource == resource
	}
	covers, excepts := target.Covers(resource)
	return (covers || excepts) && target.Related != resource
}
