package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/documents"
	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// requestTimeout is how long etcd may take for what a command asks of it.
const requestTimeout = 30 * time.Second

// session is the rules in etcd, for as long as a command runs.
type session struct {
	settings connection.Settings
	client   *clientv3.Client
	store    *store.Store
}

// open connects to etcd as the flags of a command say.
func (env Env) open(cmd *cobra.Command) (*session, error) {
	settings, err := connection.Find(cmd.Context(), cmd.Flags(), env.Getenv)
	if err != nil {
		return nil, err
	}
	for _, warning := range settings.Warnings {
		env.warn(warning)
	}
	client, err := settings.Connect(cmd.Context())
	if err != nil {
		return nil, failure{ExitFailed, err}
	}
	rules, err := store.New(client, settings.Keys.Documents)
	if err != nil {
		_ = client.Close()
		return nil, failure{ExitFailed, err}
	}
	return &session{settings, client, rules}, nil
}

func (s *session) close() { _ = s.client.Close() }

// place names the rules in etcd for the user.
func (s *session) place() string { return fmt.Sprintf("%s in etcd", s.settings.Keys.Documents) }

// pull reads what is in etcd.
func (s *session) pull(ctx context.Context) (store.Contents, error) {
	return request(ctx, s, s.store.Pull)
}

// request asks etcd for something, within a time, and explains what fails.
func request[T any](ctx context.Context, s *session, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := ask(ctx)
	return answer, s.fail(err)
}

// fail returns the failure that an error of etcd is to the user.
func (s *session) fail(err error) error {
	var overtaken *store.ConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &overtaken):
		return failure{ExitConflict, conflict(overtaken)}
	default:
		return failure{ExitFailed, s.settings.Explain(err)}
	}
}

// input is standard input for a command that reads documents there. Who sits at
// a terminal is told that it waits for them.
func (env Env) input() io.Reader {
	if !env.InIsTerminal {
		return env.In
	}
	return &typed{env: env}
}

// typed is what somebody types.
type typed struct {
	env  Env
	told bool
}

func (t *typed) Read(p []byte) (int, error) {
	if !t.told {
		t.told = true
		t.env.note("reading from the terminal: end with Ctrl-D, or stop with Ctrl-C")
	}
	return t.env.In.Read(p)
}

func (env Env) warn(text string) {
	fmt.Fprintf(env.Err, "penstock: warning: %s\n", wording.Printable(text))
}

// note tells how it goes on, beside the answer.
func (env Env) note(format string, args ...any) {
	fmt.Fprintln(env.Err, wording.Printable(fmt.Sprintf(format, args...)))
}

// judgeStored reads what documents of etcd say. Their mistakes are not the
// user's: those documents count as having no rules, which is said.
func (env Env) judgeStored(stored []store.Document) documents.Collection {
	c := documents.Judge(fromStore(stored))
	if len(c.Problems) > 0 {
		env.warn("etcd holds documents with mistakes, whose rules are left out here: " + c.Summary())
		c.Show(env.Err)
	}
	return c
}

// judgeNamed is [Env.judgeSound] for documents that have to have names of their
// own, as in etcd.
func (env Env) judgeNamed(ctx context.Context, paths []string) (documents.Collection, error) {
	if slices.Contains(paths, "-") {
		return documents.Collection{}, errors.New("standard input has no name that a document could have in etcd: name files or directories")
	}
	c, err := env.judgeSound(ctx, paths)
	if err != nil {
		return documents.Collection{}, err
	}
	if err := documents.Distinct(c.Documents); err != nil {
		return documents.Collection{}, failure{ExitFailed, err}
	}
	return c, nil
}

// judgeSound reads the documents at paths. With mistakes, it shows them and
// fails.
func (env Env) judgeSound(ctx context.Context, paths []string) (documents.Collection, error) {
	read, err := documents.Read(ctx, env.input(), paths...)
	if err != nil {
		return documents.Collection{}, failure{ExitFailed, err}
	}
	c := documents.Judge(read)
	if len(c.Problems) == 0 {
		return c, nil
	}
	c.Show(env.Err)
	return documents.Collection{}, failure{ExitNo, errors.New(c.Summary())}
}
