package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// listEdit is penstock lists add and remove.
type listEdit struct {
	name            string
	add, remove     []string
	until           string
	within          time.Duration
	message, author string
	confirmRemovals bool
	output          *format
}

func newListsAdd(env Env) *cobra.Command {
	var e listEdit
	cmd := &cobra.Command{
		Use:   "add NAME ENTRY... [flags]",
		Short: "Add entries to a list in etcd",
		Long: `Add adds entries at the end of a list that is in etcd, as they would stand in its
text, and leaves the rest of the text as it is. Entries that the list has already,
however they are written there, are not added again; if it has all of them, nothing
is written. The change is a new version, as that of a push: see penstock lists
history. It does not ask.

With --until or --for, or as in "203.0.113.9 until 2026-12-01T00:00:00Z", entries
have an end: from then on they are not on the list any more, on all instances, by
their wall clocks. An entry that the list has until an earlier time is replaced;
one that it has for longer, or without an end, stays. Lines whose entries have
ended are taken out.

If somebody else writes the list meanwhile, it is read again and the entries are
added to that, three times at most.

Exit code: 0 when the list has the entries, 1 when one has a mistake or there is
no such list (push one first), 2 for a wrong command line, 3 when etcd failed, 4
when somebody else wrote each time.

` + connection.Help,
		Example: `  penstock lists add scrapers 203.0.113.9 198.51.100.0/24 --app shop
  penstock lists add scrapers 203.0.113.9 --app shop --for 24h
  penstock lists add scrapers 203.0.113.9 --app shop -m "ticket 812" --output json`,
		Args: arguments(2, 1<<20, "which list, and which entries? penstock lists add NAME ENTRY..."),
	}
	cmd.Flags().StringVar(&e.until, "until", "", "the `time` at which the entries end, such as 2026-12-01T00:00:00Z")
	cmd.Flags().DurationVar(&e.within, "for", 0, "after how long from now the entries end, such as 24h")
	e.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e.name, e.add = args[0], args[1:]
		if err := e.setEnds(time.Now()); err != nil {
			return err
		}
		return e.run(cmd, env)
	}
	return cmd
}

func newListsRemove(env Env) *cobra.Command {
	var e listEdit
	cmd := &cobra.Command{
		Use:   "remove NAME ENTRY... [flags]",
		Short: "Take entries out of a list in etcd",
		Long: `Remove takes entries out of a list that is in etcd, each with its line, and leaves
the rest of the text as it is. Entries count however they are written: 192.0.2.1
is 192.0.2.1/32. No address is taken out of a prefix that has it. If the list has
none of the entries, nothing is written. The change is a new version, as that of a
push: see penstock lists history. It does not ask, but if more than half of the
entries would go, it needs --confirm-removals.

If somebody else writes the list meanwhile, it is read again and the entries are
taken out of that, three times at most.

Exit code: 0 when the list does not have the entries, 1 when one has a mistake,
there is no such list or too many would go, 2 for a wrong command line, 3 when
etcd failed, 4 when somebody else wrote each time.

` + connection.Help,
		Example: `  penstock lists remove scrapers 203.0.113.9 --app shop`,
		Args:    arguments(2, 1<<20, "which list, and which entries? penstock lists remove NAME ENTRY..."),
	}
	e.flags(cmd)
	cmd.Flags().BoolVar(&e.confirmRemovals, "confirm-removals", false,
		"allow that more than half of the entries go, also where instances would hold that back")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e.name, e.remove = args[0], args[1:]
		return e.run(cmd, env)
	}
	return cmd
}

// setEnds gives the entries the end that the flags say.
func (e *listEdit) setEnds(now time.Time) error {
	end := now.Add(e.within + time.Second - 1).UTC().Truncate(time.Second)
	switch {
	case e.until != "" && e.within != 0:
		return errors.New("--until and --for are two ends: leave one out")
	case e.within < 0:
		return fmt.Errorf("--for is %v: it must be positive", e.within)
	case e.until != "":
		var err error
		if end, err = time.Parse(time.RFC3339, e.until); err != nil {
			return fmt.Errorf("--until is %q, which is no time: write one such as 2026-12-01T00:00:00Z", e.until)
		}
	case e.within == 0:
		return nil
	}
	for i := range e.add {
		e.add[i] += " until " + end.Format(time.RFC3339Nano)
	}
	return nil
}

func (e *listEdit) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&e.message, "message", "m", "", "why, for penstock lists list (default the number of entries)")
	flags.StringVar(&e.author, "author", "", "who, for penstock lists list (default user@host)")
	e.output = formatFlag(cmd)
	connection.AddFlags(flags)
}

// maxEdits is how often an edit is tried while others write the list.
const maxEdits = 3

func (e *listEdit) run(cmd *cobra.Command, env Env) error {
	if err := list.CheckName(e.name); err != nil {
		return err
	}
	s, err := env.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	for tries := 1; ; tries++ {
		err := e.edit(cmd.Context(), env, s)
		var overtaken *store.ListConflictError
		if !errors.As(err, &overtaken) || tries == maxEdits {
			return err
		}
	}
}

// edit changes the list as it is now.
func (e *listEdit) edit(ctx context.Context, env Env, s *session) error {
	before, err := os.CreateTemp("", "penstock-*")
	if err != nil {
		return failure{ExitFailed, err}
	}
	defer removeFile(before)
	after, err := os.CreateTemp("", "penstock-*")
	if err != nil {
		return failure{ExitFailed, err}
	}
	defer removeFile(after)
	present, err := transfer(ctx, env, s, "reading", func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error) {
		return s.store.PullList(ctx, e.name, 0, before, progress)
	})
	if err != nil {
		return err
	}
	if _, err := before.Seek(0, 0); err != nil {
		return failure{ExitFailed, err}
	}
	done, err := list.Edit(ctx, before, after, e.add, e.remove)
	switch {
	case err != nil:
		return failure{ExitNo, err}
	case !done.IsChanged():
		e.tell(env, done, present)
		return nil
	}
	push, err := e.change(ctx, env, after, done, present)
	if err != nil {
		return err
	}
	written, err := transfer(ctx, env, s, "writing", func(ctx context.Context, progress func(done, of int64)) (store.ListInfo, error) {
		push.Progress = progress
		return s.store.PushList(ctx, push)
	})
	if err != nil {
		return err
	}
	e.tell(env, done, written)
	return nil
}

// change returns the push of the new text, if that is a list.
func (e *listEdit) change(ctx context.Context, env Env, text *os.File, done list.Edited, present store.ListInfo) (store.ListPush, error) {
	if _, err := text.Seek(0, 0); err != nil {
		return store.ListPush{}, failure{ExitFailed, err}
	}
	parsed, _, err := lists.Parse(ctx, text, list.Options{})
	if err != nil {
		return store.ListPush{}, env.mistakenList("list "+wording.Printable(e.name), err)
	}
	if before := present.Entries - done.Ended; 2*parsed.Len() < before && !e.confirmRemovals {
		return store.ListPush{}, failure{ExitNo, fmt.Errorf("nothing was written: %d of the %s would go: if so many are to go, say --confirm-removals",
			before-parsed.Len(), entries(before))}
	}
	message := "add " + entries(len(done.Added))
	if len(done.Removed) > 0 {
		message = "remove " + entries(len(done.Removed))
	}
	return store.ListPush{
		Name: e.name, Text: text, Entries: parsed.Len(), Expect: present.Revision, ConfirmRemoval: e.confirmRemovals,
		Message: cmp.Or(e.message, message), Author: cmp.Or(e.author, whoami()),
	}, nil
}

func removeFile(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// tell says what was done, and how the list is now.
func (e *listEdit) tell(env Env, done list.Edited, now store.ListInfo) {
	if *e.output == asJSON {
		env.writeJSON(struct {
			Name     string   `json:"name"`
			Added    []string `json:"added,omitempty"`
			Present  []string `json:"present,omitempty"`
			Removed  []string `json:"removed,omitempty"`
			Absent   []string `json:"absent,omitempty"`
			Ended    int      `json:"ended,omitempty"`
			Entries  int      `json:"entries"`
			Revision int64    `json:"revision"`
		}{e.name, done.Added, done.Present, done.Removed, done.Absent, done.Ended, now.Entries, now.Revision})
		return
	}
	var parts []string
	for _, part := range []struct {
		entries []string
		what    string
	}{{done.Added, "added"}, {done.Present, "there already"}, {done.Removed, "removed"}, {done.Absent, "not there"}} {
		if n := len(part.entries); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.what))
		}
	}
	if done.Ended > 0 && done.IsChanged() {
		parts = append(parts, fmt.Sprintf("%d had ended", done.Ended))
	}
	change := strings.Join(parts, ", ")
	if !done.IsChanged() {
		fmt.Fprintf(env.Out, "list %s: %s: nothing to write, it is at revision %d\n", wording.Printable(e.name), change, now.Revision)
		return
	}
	fmt.Fprintf(env.Out, "list %s: %s: it has %s and is at revision %d now\n", wording.Printable(e.name), change, entries(now.Entries), now.Revision)
}
