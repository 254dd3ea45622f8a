package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// listPush is the flags of penstock lists push.
type listPush struct {
	message, author string
	expect          int64
	yes, dryRun     bool
	confirmRemovals bool
}

const listsPushLong = `Push replaces a list in etcd by the text in a file. It reads the file first and
shows every mistake, then it says how many entries the list has and will have, and
asks. The text is written in chunks, then one transaction switches to them, so
instances have either the present list or the new one, whatever ends the push.
They build the new one in the background.

If somebody else writes the list meanwhile, nothing is changed, and the exit code
is 4. The last versions are kept: see penstock lists history.

On a terminal push asks before it writes. Without a terminal, as in scripts, it
needs --yes and fails at once without it. If more than half of the entries would
go, it also needs --confirm-removals: the file may be cut short. So it does if
addresses would give way to texts, or texts to addresses.

Exit code: 0 when etcd has the list, 1 when the file has mistakes or the answer
was no, 2 for a wrong command line, 3 when the file or etcd failed, 4 when
somebody else wrote meanwhile.

` + connection.Help

func newListsPush(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push NAME FILE [flags]",
		Short: "Write a list to etcd",
		Long:  listsPushLong,
		Example: `  penstock lists push scrapers scrapers.txt --app shop --dry-run
  penstock lists push scrapers scrapers.txt --app shop --message "from the feed"
  penstock lists push scrapers scrapers.txt --app shop --yes   # in a script`,
		Args: arguments(2, 2, "which list, and which file? penstock lists push NAME FILE"),
	}
	var p listPush
	flags := cmd.Flags()
	flags.StringVarP(&p.message, "message", "m", "", "why, for penstock lists list")
	flags.StringVar(&p.author, "author", "", "who, for penstock lists list (default user@host)")
	flags.BoolVarP(&p.yes, "yes", "y", false, "do not ask; required without a terminal")
	flags.BoolVar(&p.confirmRemovals, "confirm-removals", false,
		"allow that more than half of the entries go, also where instances would hold that back; answering yes does so too")
	flags.BoolVar(&p.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.Int64Var(&p.expect, "expect-rev", 0, "fail unless the list has this `revision` (default the one that the change is shown against)")
	connection.AddFlags(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := p.check(env, args[0]); err != nil {
			return err
		}
		text, err := openList(args[1])
		if err != nil {
			return err
		}
		defer func() { _ = text.Close() }()
		parsed, digest, err := env.parseList(cmd.Context(), args[1], text)
		if err != nil {
			return err
		}
		s, err := env.open(cmd)
		if err != nil {
			return err
		}
		defer s.close()
		push := store.ListPush{
			Name: args[0], Text: text, Entries: parsed.Len(), Expect: p.expect, Message: p.message, Author: cmp.Or(p.author, whoami()),
		}
		return p.push(cmd.Context(), env, s, push, parsed, digest)
	}
	return cmd
}

// check returns an error if the flags or the name are invalid.
func (p listPush) check(env Env, name string) error {
	switch {
	case p.expect < 0:
		return errors.New("--expect-rev must be a revision, as penstock lists list shows them")
	case !p.yes && !p.dryRun && !env.InIsTerminal:
		return errors.New("there is no terminal to ask on: say --yes to go ahead, or --dry-run to look only")
	default:
		return list.CheckName(name)
	}
}

// openList opens the file of a list.
func openList(path string) (*os.File, error) {
	if path == "-" {
		return nil, errors.New("standard input cannot be read twice: name a file")
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file (%v): name a file with the list", path, info.Mode())
	}
	if err != nil {
		return nil, failure{ExitFailed, err}
	}
	text, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, failure{ExitFailed, err}
	}
	return text, nil
}

// parseList reads a list and returns it and its digest. It prints all mistakes.
func (env Env) parseList(ctx context.Context, path string, text io.Reader) (parsed *list.List, digest string, err error) {
	bar := progress{out: env.Err, patience: 500 * time.Millisecond, silent: !env.ErrIsTerminal}
	parsed, sum, err := lists.Parse(ctx, text, list.Options{
		Progress: func(p list.Progress) { bar.tell("reading: " + entries(p.Entries)) },
	})
	bar.end()
	if err != nil {
		return nil, "", env.mistakenList(path, err)
	}
	return parsed, fmt.Sprintf("%x", sum), nil
}

// mistakenList shows the mistakes in a list, if that is what the error is about, and
// returns the failure.
func (env Env) mistakenList(path string, err error) error {
	var mistakes *list.Error
	if !errors.As(err, &mistakes) {
		return failure{ExitFailed, fmt.Errorf("%s: %w", path, err)}
	}
	for _, m := range mistakes.Mistakes {
		fmt.Fprintf(env.Err, "%s:%d: %s\n", wording.Printable(path), m.Line, wording.Printable(m.Message))
	}
	if more := mistakes.Count - len(mistakes.Mistakes); more > 0 {
		fmt.Fprintf(env.Err, "… and %d more\n", more)
	}
	return failure{ExitNo, fmt.Errorf("%s in %s", wording.Count(mistakes.Count, "mistake"), path)}
}

// push shows the change, asks, and writes the list, as the flags say.
func (p listPush) push(ctx context.Context, env Env, s *session, push store.ListPush, parsed *list.List, digest string) error {
	present, err := request(ctx, s, func(ctx context.Context) (store.ListInfo, error) { return s.store.List(ctx, push.Name) })
	switch {
	case errors.Is(err, store.ErrNoList):
		fmt.Fprintf(env.Out, "list %s: new, %s\n", wording.Printable(push.Name), entries(push.Entries))
	case err != nil:
		return err
	case present.Err != nil:
		fmt.Fprintf(env.Out, "list %s: damaged in etcd → %s\n", wording.Printable(push.Name), entries(push.Entries))
	case present.Digest == digest:
		fmt.Fprintf(env.Out, "list %s: no differences, %s\n", wording.Printable(push.Name), entries(push.Entries))
	default:
		fmt.Fprintf(env.Out, "list %s: %d → %s\n", wording.Printable(push.Name), present.Entries, entries(push.Entries))
	}
	push.Expect = cmp.Or(push.Expect, present.Revision)
	if push.Expect != present.Revision {
		return s.fail(&store.ListConflictError{Name: push.Name, Expect: push.Expect, Revision: present.Revision})
	}
	same := present.Digest == digest
	removesMost := !same && 2*push.Entries < present.Entries
	switch {
	case removesMost:
		env.warn(fmt.Sprintf("%d of the %s would go", present.Entries-push.Entries, entries(present.Entries)))
	case !same && present.Entries > 0 && kindsAt(ctx, s, push.Name, 0).excludes(kindsOf(parsed)):
		removesMost = true
		env.warn(allWouldGo(present.Entries))
	}
	switch {
	case p.dryRun:
		return nil
	case removesMost && p.yes && !p.confirmRemovals:
		return failure{ExitNo, errors.New("nothing was written: if so many entries are to go, say --confirm-removals")}
	}
	push.ConfirmRemoval = p.confirmRemovals || !p.yes && !same // whoever answers yes has seen it
	if !p.yes && !same && !env.ask(ctx, fmt.Sprintf("Write it to %s at %s?", s.settings.Keys.Lists, strings.Join(s.settings.Endpoints, ", "))) {
		return failure{ExitNo, errors.New("nothing was written")}
	}
	written, err := transfer(ctx, env, s, "writing", func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error) {
		push.Progress = progress
		return s.store.PushList(ctx, push)
	})
	switch {
	case err != nil:
		return err
	case written.Revision == present.Revision:
		fmt.Fprintf(env.Out, "nothing to write: list %s is at revision %d\n", wording.Printable(push.Name), written.Revision)
	default:
		fmt.Fprintf(env.Out, "list %s in etcd is at revision %d now\n", wording.Printable(push.Name), written.Revision)
	}
	return nil
}

// allWouldGo is the warning that the entries of a list of the other kind take the place of so many.
func allWouldGo(n int) string {
	return fmt.Sprintf("all of the %s would go: a list of addresses and one of texts have none in common", entries(n))
}

// listKinds says which kinds of entries a list has, as far as that is known.
type listKinds struct{ addrs, texts bool }

func kindsOf(l *list.List) listKinds { return listKinds{l.HasAddrs(), l.HasTexts()} }

// excludes says whether one has addresses where the other has texts.
func (k listKinds) excludes(other listKinds) bool {
	return k.addrs && other.texts || k.texts && other.addrs
}

// kindsAt returns the kinds of entries of a list in etcd, at the revision of a former version unless that is 0. It
// reads the beginning of the list; what has no entry there may be of any kind.
func kindsAt(ctx context.Context, s *session, name string, revision int64) listKinds {
	var begin beginning
	_, _ = request(ctx, s, func(ctx context.Context) (store.ListInfo, error) {
		return s.store.PullList(ctx, name, revision, &begin, func(_, _ int64) {})
	})
	whole := begin.text[:bytes.LastIndexByte(begin.text, '\n')+1]
	if len(begin.text) < maxBeginning {
		whole = begin.text
	}
	found, err := list.Parse(ctx, bytes.NewReader(whole), list.Options{})
	if err != nil {
		return listKinds{}
	}
	return kindsOf(found)
}

// beginning keeps the first bytes that are written, and then fails.
type beginning struct{ text []byte }

const maxBeginning = 1 << 20 // bytes

func (b *beginning) Write(p []byte) (int, error) {
	n := min(len(p), maxBeginning-len(b.text))
	if b.text = append(b.text, p[:n]...); n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

var errStalled = errors.New("etcd has not answered for " + requestTimeout.String())

// transfer reads or writes a list. It shows the progress and fails when there is none for
// as long as a request may take.
func transfer(
	ctx context.Context, env Env, s *session, doing string,
	do func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error),
) (store.ListInfo, error) {
	alive, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(requestTimeout, func() { cancel(errStalled) })
	defer stalled.Stop()
	bar := progress{out: env.Err, patience: 500 * time.Millisecond, silent: !env.ErrIsTerminal}
	info, err := do(alive, func(done, of int64) {
		stalled.Reset(requestTimeout)
		bar.tell(fmt.Sprintf("%s: %.1f of %.1f MiB", doing, float64(done)/(1<<20), float64(of)/(1<<20)))
	})
	bar.end()
	if err != nil && errors.Is(context.Cause(alive), errStalled) {
		return info, failure{ExitFailed, fmt.Errorf("%w: %w", errStalled, err)}
	}
	return info, s.fail(err)
}
