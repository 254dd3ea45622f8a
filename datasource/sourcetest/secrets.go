package sourcetest

import (
	"fmt"
	"log"
	"log/slog"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
)

// secretDocument stands in documents that must not be logged as a whole.
const secretDocument = "classified-resource-0451"

// secretsAreNotShown looks for credentials, and for the contents of documents, in all
// that a source and the engine that follows it show. The source is read, lost, and read
// again.
func secretsAreNotShown(f *fixture) {
	defer captureDefaultLog(f.log)()
	f.put("a.yaml", limited(secretDocument, 1))
	source := f.open()
	engine := core.New(core.Config{Logger: slog.New(slog.NewTextHandler(f.log, nil))})
	defer engine.Close()
	require.NoError(f.t, engine.Follow(f.t.Context(), source))
	f.awaitRules(engine, map[string]float64{secretDocument: 1})
	show := func() {
		status := engine.Status()
		f.requireNoSecrets("the status", fmt.Sprintf("%+v", status))
		for _, s := range status.Sources {
			if s.Err != nil {
				f.requireNoSecrets("the status", s.Err.Error())
			}
		}
	}
	show()
	f.store.Stop()
	f.awaitStatus(engine, func(s core.SourceStatus) bool { return !s.Connected })
	show()
	f.put("a.yaml", limited(secretDocument, 2))
	f.store.Start()
	f.awaitRules(engine, map[string]float64{secretDocument: 2})
	show()
	engine.Close()
	f.requireNoSecrets("the log", f.log.String())
	assert.NotContains(f.t, sourceLines(f.log.String()), secretDocument, "the contents of documents are not logged")
}

// sourceLines returns a log without the lines of rules that were put in force, which are
// the engine's.
func sourceLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.Contains(line, "penstock: rules") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// captureDefaultLog writes the default logs to a buffer too, until the function that it
// returns is called: a source may use them by mistake.
func captureDefaultLog(to *logBuffer) (restore func()) {
	before, flags, writer := slog.Default(), log.Flags(), log.Writer()
	slog.SetDefault(slog.New(slog.NewTextHandler(to, nil)))
	return func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetOutput(writer)
	}
}

func refusedCredentialsAreReported(f *fixture) {
	require.NotNil(f.t, f.harness.OpenRefused, "Harness.OpenRefused is not set: set it, or say in Harness.Lacks why not")
	f.put("a.yaml", limited("a", 1))
	r := f.followSource(f.openWith(f.harness.OpenRefused))
	r.AwaitDisconnected(f.t)
	requirePauses(f, r, 10, 200)
	assert.Empty(f.t, r.Changes(), "nothing is delivered")
}
