package sourcetest

import (
	"cmp"
	"log/slog"
	"testing"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Store is what a source reads, with a network in between that can fail. The suite
// calls its methods from one goroutine, the test's own. A method returns when what it
// does has happened, and fails the test that [Harness.NewStore] was given if it cannot.
// Names of documents end in ".yaml".
type Store interface {
	// Put writes a document, whether it is there or not. It works while the store is
	// stopped: the source cannot reach the store then, but the test can.
	Put(name, content string)

	// Delete removes a document that is there. It works while the store is stopped.
	Delete(name string)

	// Stop makes the store unreachable for the source: connections are cut, and new ones
	// fail.
	Stop()

	// Start makes the store reachable again, with the documents that it has by then.
	Start()
}

// Replacer is a [Store] that can be replaced by a new one at the same address.
type Replacer interface {
	// Replace loses all documents and the history of the store: revisions begin anew. The
	// suite calls it while the store is stopped.
	Replace()
}

// Cutter is a [Store] whose connections can be cut in the middle of an answer.
// [Proxy.ResetAfter] does it.
type Cutter interface {
	// CutAfter cuts all connections once, after that many more bytes were sent to the
	// source. Connections made after that work.
	CutAfter(bytes int)
}

// Counter is a [Store] that counts attempts to reach it. [Proxy.Connections] does it. A
// source of a store that is none has to report each failed attempt.
type Counter interface {
	// Attempts returns how often the source has tried to reach the store, in connections
	// or requests.
	Attempts() int
}

// Hider is a [Store] that can change a document and go on saying that nothing has changed.
type Hider interface {
	// PutHidden changes a document that is there. All by which the source may notice that
	// without reading the document stays as it was: tags, times, revisions and
	// notifications. It waits first until the source relies on those. The content is as
	// long as the one before.
	PutHidden(name, content string)
}

// Feature is something that not every source or store can do.
type Feature string

// The features that a [Harness] may lack.
const (
	// AnyName are names with characters other than letters, digits, dots, dashes and
	// underscores of ASCII, and names that differ in case only.
	AnyName Feature = "names of any characters"

	// Slashes are documents with slashes in their names.
	Slashes Feature = "slashes in names"

	// EmptyDocuments are documents without content.
	EmptyDocuments Feature = "empty documents"

	// LongDocuments are documents that are longer than rules.MaxDocumentSize.
	LongDocuments Feature = "long documents"

	// Replacement says that the store is a [Replacer].
	Replacement Feature = "replacement of the store"

	// Cuts says that the store is a [Cutter].
	Cuts Feature = "cuts within an answer"

	// HiddenChanges says that the store is a [Hider].
	HiddenChanges Feature = "changes that the store hides"

	// Credentials says that [Harness.OpenRefused] is set.
	Credentials Feature = "credentials"
)

// Options are what the suite demands of a source that it opens.
type Options struct {
	// Logger is where the source logs, if it logs anything. The suite looks for secrets
	// there.
	Logger *slog.Logger
}

// Harness tells [Run] how to make a source, and the store that it reads.
type Harness struct {
	// NewStore returns an empty store that runs until the test ends. Required.
	NewStore func(t *testing.T) Store

	// Open returns a source of the documents in the store. It has short timeouts and
	// pauses, of milliseconds where the defaults are seconds or minutes, but does not try more than
	// 200 times a second to reach a store that is stopped. Resources that the source uses,
	// and does not close itself, are closed when the test ends. Required.
	Open func(t *testing.T, store Store, opts Options) core.Source

	// OpenRefused is like Open, with credentials that the store refuses. They belong in
	// Secrets too. Required, unless the source lacks [Credentials].
	OpenRefused func(t *testing.T, store Store, opts Options) core.Source

	// Secrets are the passwords and tokens that Open and OpenRefused use. They must not
	// appear in names, errors, logs and status.
	Secrets []string

	// Documents is the number of documents of the test with many. Defaults to 2000.
	Documents int

	// Patience is how long the suite waits for what has to happen. Defaults to [Patience].
	Patience time.Duration

	// Lacks has the features that the source or its store does not have, each with the
	// reason. Tests that need one are skipped and say why.
	Lacks map[Feature]string
}

// Run runs the suite, a subtest for each promise. Each one has a store of its own. They
// do not run in parallel, because they look for goroutines that are left.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.NewStore == nil || h.Open == nil {
		t.Fatal("sourcetest: Harness.NewStore and Harness.Open are required")
	}
	h.Documents = cmp.Or(h.Documents, 2000)
	h.Patience = cmp.Or(h.Patience, Patience)
	for _, p := range promises() {
		t.Run(p.name, func(t *testing.T) {
			for _, feature := range p.needs {
				if reason, lacks := h.Lacks[feature]; lacks {
					t.Skipf("the source lacks %s: %s", feature, reason)
				}
			}
			p.test(newFixture(t, h))
		})
	}
}

// promise is one test of the suite.
type promise struct {
	name  string
	needs []Feature
	test  func(f *fixture)
}

func promises() []promise {
	return []promise{
		{"FirstChangeIsComplete", nil, firstChangeIsComplete},
		{"EmptyStoreIsComplete", nil, emptyStoreIsComplete},
		{"DocumentsAreAddedChangedAndRemoved", nil, documentsAreAddedChangedAndRemoved},
		{"LastDocumentCanBeRemoved", nil, lastDocumentCanBeRemoved},
		{"NamesArriveAsWritten", nil, namesArriveAsWritten},
		{"NamesOfAnyCharactersArriveAsWritten", []Feature{AnyName}, namesOfAnyCharactersArriveAsWritten},
		{"NamesWithSlashesArriveAsWritten", []Feature{Slashes}, namesWithSlashesArriveAsWritten},
		{"EmptyDocumentIsNotARemoval", []Feature{EmptyDocuments}, emptyDocumentIsNotARemoval},
		{"TooLongDocumentIsFaultyAlone", []Feature{LongDocuments}, tooLongDocumentIsFaultyAlone},
		{"ManyDocumentsAreOneChange", nil, manyDocumentsAreOneChange},
		{"WritesArriveInOrder", nil, writesArriveInOrder},
		{"HiddenChangesArrive", []Feature{HiddenChanges}, hiddenChangesArrive},

		{"StoreThatStartsLaterIsRead", nil, storeThatStartsLaterIsRead},
		{"DocumentsStayWhileUnreachable", nil, documentsStayWhileUnreachable},
		{"ChangesMadeWhileUnreachableArrive", nil, changesMadeWhileUnreachableArrive},
		{"RemovalOfAllWhileUnreachableArrives", nil, removalOfAllWhileUnreachableArrives},
		{"NoUpdateIsLostUnderCuts", nil, noUpdateIsLostUnderCuts},
		{"CutReadIsNotDelivered", []Feature{Cuts}, cutReadIsNotDelivered},
		{"DocumentsOfAReplacedStoreAreRead", []Feature{Replacement}, documentsOfAReplacedStoreAreRead},
		{"FailedAttemptsPause", nil, failedAttemptsPause},

		{"RunEndsWithItsContext", nil, runEndsWithItsContext},
		{"RunEndsWhileUnreachable", nil, runEndsWhileUnreachable},
		{"SecondRunReadsAnew", nil, secondRunReadsAnew},
		{"TwoRunsAtOnceAreIndependent", nil, twoRunsAtOnceAreIndependent},

		{"SecretsAreNotShown", nil, secretsAreNotShown},
		{"RefusedCredentialsAreReported", []Feature{Credentials}, refusedCredentialsAreReported},

		{"EngineEnforcesTheRules", nil, engineEnforcesTheRules},
		{"EngineKeepsTheLastGoodVersionOfABadDocument", nil, engineKeepsTheLastGoodVersion},
		{"EngineKeepsItsRulesWhileUnreachable", nil, engineKeepsItsRulesWhileUnreachable},
		{"EngineHoldsBackAnEmptiedStore", nil, engineHoldsBackAnEmptiedStore},
	}
}
