package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func newPull(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pull [DIRECTORY] [flags]",
		Short: "Fetch the documents in etcd",
		Long: `Pull writes the documents in etcd to a directory, one file each, and replaces files
atomically. If the directory contains other documents or other versions, it is
not changed, unless --force is given: then they are removed or replaced. Files
that are not documents are never touched, nor anything outside the directory.

Without a directory, or for "-", the documents are written to standard output as
one stream of YAML, each after a line "--- # NAME".

Exit code: 0 when it is done, 1 when the directory contains other documents or
etcd none, 2 for a wrong command line, 3 when a file or etcd failed.

` + connection.Help,
		Example: `  penstock pull rules/ --app shop
  penstock pull --app shop | less
  penstock pull before/ --app shop --rev 57`,
		Args: arguments(0, 1, ""),
	}
	force := cmd.Flags().Bool("force", false, "replace and remove other documents in the directory")
	revision := cmd.Flags().Int64("rev", 0, "fetch this `revision` of the history (default the present)")
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		contents, err := s.pullOf(cmd.Context(), *revision)
		switch {
		case err != nil:
			return err
		case len(contents.Documents) == 0:
			return failure{ExitNo, errors.New(s.noDocuments())}
		case len(args) == 0 || args[0] == "-":
			env.stream(contents)
			return nil
		default:
			return env.save(cmd.Context(), args[0], contents, *force)
		}
	}
	return cmd
}

// pullOf reads a revision of the history, or the present documents for 0.
func (s *session) pullOf(ctx context.Context, revision int64) (store.Contents, error) {
	if revision != 0 {
		return s.at(ctx, revision)
	}
	contents, err := s.pull(ctx)
	if err != nil {
		return store.Contents{}, err
	}
	history, err := request(ctx, s, s.store.History)
	for _, entry := range history {
		if entry.Revision <= contents.Revision { // the last push before they were read
			contents.Latest = max(contents.Latest, entry.Revision)
			break
		}
	}
	contents.Revision = contents.Latest
	return contents, err
}

func (env Env) stream(contents store.Contents) {
	var all bytes.Buffer
	for _, d := range contents.Documents {
		fmt.Fprintf(&all, "--- # %s\n", wording.Printable(d.Name))
		all.Write(d.Data)
		if !bytes.HasSuffix(d.Data, []byte("\n")) {
			all.WriteByte('\n')
		}
	}
	_, _ = all.WriteTo(env.Out)
}

func (env Env) save(ctx context.Context, directory string, contents store.Contents, force bool) error {
	changes, err := documents.Save(ctx, directory, fromStore(contents.Documents), force)
	var unsaved *documents.UnsavedError
	switch {
	case errors.As(err, &unsaved):
		return failure{ExitNo, fmt.Errorf("%w: nothing was written; pull into another directory, or replace them with --force", err)}
	case err != nil:
		return failure{ExitFailed, err}
	}
	for _, d := range contents.Documents {
		if !documents.IsDocument(d.Name) {
			env.warn(fmt.Sprintf("a push of %s would leave out %s: documents in a directory end in .yaml, .yml or .json", directory, d.Name))
		}
	}
	fmt.Fprintf(env.Out, "%s: %s of revision %d; %s\n",
		wording.Printable(directory), wording.Count(len(contents.Documents), "document"), contents.Revision, countDocuments(changes))
	return nil
}

func fromStore(stored []store.Document) []documents.Document {
	read := make([]documents.Document, len(stored))
	for i, d := range stored {
		read[i] = documents.Document{Name: d.Name, Data: d.Data}
	}
	return read
}
