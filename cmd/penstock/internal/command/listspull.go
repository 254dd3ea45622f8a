package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

func newListsPull(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pull NAME [FILE] [flags]",
		Short: "Fetch a list in etcd",
		Long: `Pull writes the text of a list, byte for byte as it was pushed, to a file, which it
replaces as a whole, or to standard output. A file that exists is not changed,
unless --force is given.

Exit code: 0 when it is done, 1 when there is no such list or the file exists, 2
for a wrong command line, 3 when the file or etcd failed. After a failure, what
was written to standard output is not complete.

` + connection.Help,
		Example: `  penstock lists pull scrapers scrapers.txt --app shop
  penstock lists pull scrapers --app shop | less`,
		Args: arguments(1, 2, "which list? penstock lists list shows them"),
	}
	force := cmd.Flags().Bool("force", false, "replace the file")
	connection.AddFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		if len(args) == 1 || args[1] == "-" {
			out := bufio.NewWriter(env.Out)
			_, err := transfer(cmd.Context(), env, s, "reading", func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error) {
				return s.store.PullList(ctx, args[0], 0, out, progress)
			})
			return errors.Join(err, out.Flush())
		}
		return env.saveList(cmd.Context(), s, args[0], args[1], *force)
	}
	return cmd
}

// saveList writes a list to a file: first to another one beside it, which then takes its
// place.
func (env Env) saveList(ctx context.Context, s *session, name, path string, force bool) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return failure{ExitNo, fmt.Errorf("%s exists: pull into another file, or replace it with --force", path)}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failure{ExitFailed, err}
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".penstock-*")
	if err != nil {
		return failure{ExitFailed, err}
	}
	defer func() { _ = os.Remove(file.Name()) }() // fails once it has another name
	defer func() { _ = file.Close() }()
	info, err := transfer(ctx, env, s, "reading", func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error) {
		return s.store.PullList(ctx, name, 0, file, progress)
	})
	if err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(0o644), file.Sync(), file.Close()); err != nil {
		return failure{ExitFailed, err}
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return failure{ExitFailed, err}
	}
	fmt.Fprintf(env.Out, "%s: %s of revision %d\n", wording.Printable(path), entries(info.Entries), info.Revision)
	return nil
}
