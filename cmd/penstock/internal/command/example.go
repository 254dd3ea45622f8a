package command

import (
	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/rule"
)

func newExample(env Env) *cobra.Command {
	table := env.table()
	var known []string
	for _, kind := range table.Definitions() {
		known = append(known, string(kind.Kind()))
	}
	cmd := &cobra.Command{
		Use:   "example [KIND...] [flags]",
		Short: "Show what a rule document looks like",
		Long: `Example prints a rule document in YAML with every field of rules, its meaning and
its default: for all kinds of rules, or for the kinds given. The document is
valid, so you can start from it.

Exit code: 0 when it is printed, 2 for a wrong command line.`,
		Example: `  penstock example
  penstock example flow > rules/orders.yaml`,
		ValidArgsFunction: cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp),
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var kinds []rule.Kind
		for _, arg := range args {
			kinds = append(kinds, rule.Kind(arg))
		}
		document, err := table.Example(kinds...)
		if err != nil {
			return err
		}
		_, _ = env.Out.Write(document) // Run checks the error
		return nil
	}
	return cmd
}
