package command

import (
	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
)

// againstEtcd is the value of --against for the rules in etcd.
const againstEtcd = "etcd"

func newDiff(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff PATH... [flags]",
		Short: "Show what a push would change, rule by rule",
		Long: `Diff compares the documents at the paths with those in etcd, or with those at
another path, and shows what a push of them would change:

  + a rule that is added, with its fields
  ~ a rule that changes: field: before → after
  - a rule that is removed
  > a rule that moves unchanged to another document

The documents that differ, even if only in comments, follow. Colours are used on
a terminal; NO_COLOR turns them off.

` + unknownKindsHelp + `

Exit code: 0, with or without differences (with --exit-code: 1 when there are
any), 1 when documents have mistakes, 2 for a wrong command line, 3 when a file
or etcd cannot be read.

` + connection.Help,
		Example: `  penstock diff rules/ --app shop
  penstock diff rules/ --against ../release/rules
  penstock diff rules/ --app shop --exit-code --output json`,
		Args: documentPaths(),
	}
	against := cmd.Flags().String("against", againstEtcd, "the `path` to compare with, or etcd")
	exitCode := cmd.Flags().Bool("exit-code", false, "exit with 1 when there are differences")
	allow := unknownKindsFlag(cmd)
	output := formatFlag(cmd)
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, paths []string) error {
		to, err := env.readNamed(cmd.Context(), paths, unlessMisspelled(*allow))
		if err != nil {
			return err
		}
		from, revision, err := env.readOther(cmd, *against)
		if err != nil {
			return err
		}
		changes := documents.Compare(from, to)
		env.warnOfUnknownKinds(from, to)
		if *output == asJSON {
			env.writeJSON(changesJSON(changes, revision))
		} else {
			env.printChanges(changes)
			if revision > 0 {
				env.note("compared with etcd at revision %d", revision)
			}
		}
		if *exitCode && !changes.None() {
			return failure{code: ExitNo}
		}
		return nil
	}
	return cmd
}

// readOther reads the documents to compare with, and their revision if they are in
// etcd.
func (env Env) readOther(cmd *cobra.Command, against string) (documents.Collection, int64, error) {
	if against != againstEtcd {
		c, err := env.readNamed(cmd.Context(), []string{against}, documents.LeftOut)
		return c, 0, err
	}
	s, err := env.open(cmd)
	if err != nil {
		return documents.Collection{}, 0, err
	}
	defer s.close()
	contents, err := s.pull(cmd.Context())
	return env.parseStored(contents.Documents), contents.Revision, err
}
