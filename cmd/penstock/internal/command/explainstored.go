package command

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/inspect"
)

// instanceExplanation is what an instance says of a call.
type instanceExplanation struct {
	Instance string               `json:"instance"`
	Engine   string               `json:"engine,omitempty"` // its address; "" if it reports none
	Error    string               `json:"error,omitempty"`  // why it has not answered
	Answer   *inspect.Explanation `json:"explanation,omitempty"`
}

// explainStored explains the call with the documents in etcd, and with ask what the instances say.
func (env Env) explainStored(cmd *cobra.Command, call inspect.Call, lists string, ask bool, output format) error {
	registry, err := env.readLists(cmd.Context(), lists)
	if err != nil {
		return err
	}
	s, err := env.open(cmd)
	if err != nil {
		return fmt.Errorf("%w\nOther rules than those in etcd are named by --rules or --engine", err)
	}
	defer s.close()
	contents, err := s.pull(cmd.Context())
	if err != nil {
		return err
	}
	if len(contents.Documents) == 0 {
		env.warn(s.noDocuments())
	}
	stored := env.parseStored(contents.Documents)
	for _, u := range stored.Unknown {
		env.warn(holding(u) + ": they are left out here")
	}
	found, err := env.explainSet(stored.Rules, registry, call)
	if err != nil {
		return err
	}
	var reports []etcd.Report
	if ask {
		if reports, err = request(cmd.Context(), s, s.store.Instances); err != nil {
			return err
		}
	}
	said := askInstances[inspect.Explanation](cmd.Context(), reports, "explain", call.Query())
	if said.asked() {
		found.Instances = explanationsOf(reports, said)
	}
	env.showExplanation(found, output)
	return tellMissing(env, reports, said)
}

// explanationsOf returns what instances say, in the order of their reports.
func explanationsOf(reports []etcd.Report, said answers[inspect.Explanation]) (all []instanceExplanation) {
	for _, r := range reports {
		of := instanceExplanation{Instance: r.Instance, Engine: r.Inspect, Error: said.error(r.Instance)}
		if answer := said[r.Instance]; answer.asked && answer.err == nil {
			of.Answer = &answer.value
		}
		all = append(all, of)
	}
	return all
}

// writeInstances writes what each instance has in force for the call, beside the rules in etcd.
func writeInstances(text *bytes.Buffer, of explanation) {
	for i, instance := range of.Instances {
		if i == 0 {
			fmt.Fprintln(text, "\nIn the instances:")
		}
		fmt.Fprintf(text, "\n%s", wording.Cell(instance.Instance))
		switch {
		case instance.Engine == "":
			fmt.Fprintln(text, ": not asked, as it reports no address of its inspect handler")
			continue
		case instance.Answer == nil:
			fmt.Fprintf(text, " at %s: no answer: %s\n", wording.Cell(instance.Engine), wording.Cell(instance.Error))
			continue
		case len(instance.Answer.Rules) == 0:
			fmt.Fprintf(text, " at %s: no rule applies\n", wording.Cell(instance.Engine))
		default:
			fmt.Fprintf(text, " at %s:\n", wording.Cell(instance.Engine))
		}
		for _, r := range instance.Answer.Rules {
			writeInForce(text, r, of.Rules)
		}
		for _, r := range of.Rules {
			if !slices.ContainsFunc(instance.Answer.Rules, func(other inspect.Rule) bool { return isSameRule(other, r) }) {
				fmt.Fprintf(text, "- %s rule %q is not in force\n", r.Kind, r.Name)
			}
		}
	}
}

// writeInForce writes the state of a rule in an instance, and how it differs from the one in etcd.
func writeInForce(out io.Writer, r inspect.Rule, stored []inspect.Rule) {
	fmt.Fprintf(out, "- %s rule %q", r.Kind, r.Name)
	at := slices.IndexFunc(stored, func(other inspect.Rule) bool { return isSameRule(other, r) })
	switch {
	case at < 0:
		fmt.Fprintf(out, ", not among the documents in etcd: %s", fieldList(r))
	case fieldList(stored[at]) != fieldList(r):
		fmt.Fprintf(out, ", other than in etcd: %s", fieldList(r))
	}
	var marks []string
	if r.Shadow {
		marks = append(marks, "a shadow")
	}
	if r.Off {
		marks = append(marks, "switched off: it refuses nothing")
	}
	if r.State != nil {
		marks = append(marks, describeState(*r.State))
	}
	fmt.Fprintf(out, "\n  %s\n", strings.Join(marks, "; "))
}

func isSameRule(a, b inspect.Rule) bool { return a.Kind == b.Kind && a.Name == b.Name }
