package lists_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lists"
	"github.com/penstock-go/penstock/list"
)

// failures are the ways in which code of the program does not return.
var failures = map[string]func(){"panic": func() { panic("foreign") }, "Goexit": runtime.Goexit}

// foreignReader fails when it is read or closed.
type foreignReader struct {
	io.Reader
	read, closed func()
}

func (r foreignReader) Read(p []byte) (int, error) {
	r.read()
	return r.Reader.Read(p)
}

func (r foreignReader) Close() error {
	r.closed()
	return nil
}

func TestTextWhoseReaderFailsIsReadAgainAndTheListStays(t *testing.T) {
	for how, fail := range failures {
		for _, place := range []string{"open", "read", "close"} {
			t.Run(how+" in "+place, func(t *testing.T) {
				watch(t, func(t *testing.T, f *fixture) {
					f.holds("a", "10.0.0.1\n")
					f.apply(core.Change{Complete: true, Documents: []core.Document{document("a", "10.0.0.1\n")}})
					f.holdsReader("a", func() io.ReadCloser {
						in := func(name string) func() {
							return func() {
								if name == place {
									fail()
								}
							}
						}
						in("open")()
						return foreignReader{strings.NewReader("10.0.0.2\n"), in("read"), in("close")}
					})
					f.apply(core.Change{Documents: []core.Document{document("a", "10.0.0.2\n")}})
					status := f.registry.Status()
					require.Len(t, status, 1)
					assert.Equal(t, 1, status[0].Entries)
					require.Error(t, status[0].Err)
					f.holds("a", "10.0.0.2\n10.0.0.3\n")
					f.apply(core.Change{Documents: []core.Document{document("a", "10.0.0.2\n10.0.0.3\n")}})
					assert.Equal(t, 2, f.registry.Status()[0].Entries)
					assert.NoError(t, f.registry.Status()[0].Err)
				})
			})
		}
	}
}

// failingSource fails the first time that it is run.
type failingSource struct {
	runs *int
	fail func()
}

func (failingSource) Name() string { return "failing:" }

func (s failingSource) Run(ctx context.Context, sink core.Sink) error {
	if *s.runs++; *s.runs == 1 {
		s.fail()
	}
	sink.Apply(core.Change{Complete: true, Documents: []core.Document{document("a", "x\n")}})
	<-ctx.Done()
	return ctx.Err()
}

func TestSourceOfListsThatPanicsIsStartedAgain(t *testing.T) {
	for how, fail := range failures {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry, runs := list.NewRegistry(), 0
				w, err := lists.Start(t.Context(), lists.Config{
					Registry: registry, Source: failingSource{&runs, fail}, Logger: slog.New(slog.DiscardHandler),
					Open: func(_ context.Context, d lists.Document) (lists.Text, error) {
						return lists.Text{ReadCloser: io.NopCloser(strings.NewReader("x\n")), Digest: d.Digest}, nil
					},
				})
				require.NoError(t, err)
				synctest.Wait()
				assert.False(t, w.Status().Connected)
				require.Error(t, w.Status().Err)
				if how == "panic" {
					time.Sleep(2 * time.Second)
					synctest.Wait()
					require.NoError(t, w.Ready(t.Context()))
					assert.Len(t, registry.Status(), 1)
				}
				w.Close()
			})
		})
	}
}
