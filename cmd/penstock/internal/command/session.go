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

// requestTimeout is how long etcd may take for a request.
const requestTimeout = 30 * time.Second

// session is the connection of a command to the rules in etcd.
type session struct {
	settings connection.Settings
	client   *clientv3.Client
	store    *store.Store
}

// open connects to etcd with the settings of a command.
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

// place describes the rules in etcd for messages.
func (s *session) place() string { return fmt.Sprintf("%s in etcd", s.settings.Keys.Documents) }

// noDocuments says that there are none, for messages.
func (s *session) noDocuments() string {
	return fmt.Sprintf("there are no documents below %s: is that the right place?", s.settings.Keys.Documents)
}

// pull reads the present documents in etcd.
func (s *session) pull(ctx context.Context) (store.Contents, error) {
	return request(ctx, s, s.store.Pull)
}

// request makes a request to etcd with a timeout and explains its error.
func request[T any](ctx context.Context, s *session, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := ask(ctx)
	return answer, s.fail(err)
}

// read is [request] for what changes nothing: while etcd is away, as during a restart, it asks again.
func read[T any](ctx context.Context, s *session, ask func(context.Context) (T, error)) (T, error) {
	return request(ctx, s, func(ctx context.Context) (answer T, err error) {
		for {
			answer, err = ask(ctx)
			if !connection.IsAway(err) {
				return answer, err
			}
			select {
			case <-ctx.Done():
				return answer, err
			case <-time.After(pollInterval):
			}
		}
	})
}

// fail converts an error of etcd to one with an exit code.
func (s *session) fail(err error) error {
	var overtaken *store.ConflictError
	var replaced *store.ListConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &replaced):
		return failure{ExitConflict, err}
	case errors.Is(err, store.ErrNoList):
		return failure{ExitNo, err}
	case errors.As(err, &overtaken):
		return failure{ExitConflict, conflictError(overtaken)}
	default:
		return failure{ExitFailed, s.settings.Explain(err)}
	}
}

// input is standard input for a command that reads documents from it. On a terminal it
// prints a note that the command is waiting for input.
func (env Env) input() io.Reader {
	if !env.InIsTerminal {
		return env.In
	}
	return &terminalInput{env: env}
}

// terminalInput is input from a terminal.
type terminalInput struct {
	env   Env
	noted bool
}

func (t *terminalInput) Read(p []byte) (int, error) {
	if !t.noted {
		t.noted = true
		t.env.note("reading from the terminal: end with Ctrl-D, or stop with Ctrl-C")
	}
	return t.env.In.Read(p)
}

func (env Env) warn(text string) {
	fmt.Fprintf(env.Err, "penstock: warning: %s\n", wording.Printable(text))
}

// note prints a progress message to standard error.
func (env Env) note(format string, args ...any) {
	fmt.Fprintln(env.Err, wording.Printable(fmt.Sprintf(format, args...)))
}

// parseStored parses documents of etcd. It prints a warning about mistakes and leaves
// out the rules of those documents.
func (env Env) parseStored(stored []store.Document) documents.Collection {
	c := documents.Judge(env.table(), fromStore(stored), documents.LeftOut)
	if len(c.Problems) > 0 {
		env.warn("etcd holds documents with mistakes, whose rules are left out here: " + c.Summary())
		c.Show(env.Err)
	}
	return c
}

// readNamed is like [Env.judgeSound], and returns an error unless the documents have
// different names, as they must in etcd.
func (env Env) readNamed(ctx context.Context, paths []string, unknown documents.UnknownKinds) (documents.Collection, error) {
	if slices.Contains(paths, "-") {
		return documents.Collection{}, errors.New("standard input has no name that a document could have in etcd: name files or directories")
	}
	c, err := env.judgeSound(ctx, paths, unknown)
	if err != nil {
		return documents.Collection{}, err
	}
	if err := documents.Distinct(c.Documents); err != nil {
		return documents.Collection{}, failure{ExitFailed, err}
	}
	return c, nil
}

// judgeSound reads and parses the documents at paths. If they have mistakes, it prints
// them and returns an error.
func (env Env) judgeSound(ctx context.Context, paths []string, unknown documents.UnknownKinds) (documents.Collection, error) {
	read, err := documents.Read(ctx, env.input(), paths...)
	if err != nil {
		return documents.Collection{}, failure{ExitFailed, err}
	}
	c := documents.Judge(env.table(), read, unknown)
	if len(c.Problems) == 0 {
		return c, nil
	}
	c.Show(env.Err)
	hintAtKinds(env.Err, c, unknown != documents.Mistakes)
	return documents.Collection{}, failure{ExitNo, errors.New(c.Summary())}
}
