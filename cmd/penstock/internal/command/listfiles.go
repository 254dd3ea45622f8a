package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rules"
)

// listsFlag adds the flag --lists to a command.
func listsFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("lists", "", "take the lists that rules name from this `path`: a directory of files that end in .txt or .list, or a file")
}

// readLists returns the lists at the path of --lists, none if that is not set.
func (env Env) readLists(ctx context.Context, path string) (*list.Registry, error) {
	registry := list.NewRegistry()
	if path == "" {
		return registry, nil
	}
	err := file.ReadLists(ctx, registry, path)
	var mistakes *list.Error
	switch {
	case err == nil:
		return registry, nil
	case errors.As(err, &mistakes):
		return nil, failure{ExitNo, err}
	default:
		return nil, failure{ExitFailed, err}
	}
}

// missingLists returns a warning for each rule that names a list that is not there.
func missingLists(set rules.Set, present []string, where string) []string {
	var warnings []string
	for r := range set.All() {
		for _, name := range r.Lists() {
			if slices.Contains(present, name) {
				continue
			}
			warnings = append(warnings, fmt.Sprintf("%s rule %s names list %s, which is not %s",
				r.Key().Kind, wording.Quote(r.Key().Name), wording.Quote(name), where))
		}
	}
	return warnings
}

// warnOfLists warns of rules that name lists which a command does not have.
func (env Env) warnOfLists(set rules.Set, registry *list.Registry, path string) {
	where := "at " + path
	if path == "" {
		where = "there: --lists names a directory with lists"
	}
	for _, warning := range missingLists(set, registry.Names(), where) {
		env.warn(warning)
	}
}

// warnOfMissing warns of rules that name lists which etcd does not have. It does nothing
// if the user may not read them.
func (env Env) warnOfMissing(ctx context.Context, s *session, set rules.Set) {
	if len(missingLists(set, nil, "")) == 0 {
		return
	}
	found, err := request(ctx, s, s.store.Lists)
	if err != nil {
		return
	}
	present := make([]string, len(found))
	for i, l := range found {
		present[i] = l.Name
	}
	for _, warning := range missingLists(set, present, "in etcd, below "+s.settings.Keys.Lists+": instances may have it from files or code") {
		env.warn(warning)
	}
}
