package etcd

import (
	"errors"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/internal/listformat"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

const (
	maxRejections    = 100     // in a report
	maxHeld          = 100     // documents that a report names
	maxNames         = 8 << 10 // bytes of their names, and of the names of unmatched rules
	maxForced        = 100     // forced states
	maxRejectionText = 1 << 10 // bytes, of a document's name and of an error
)

// Report says which documents are in force in one instance of a service. A run
// with [Options.Instance] writes it, as JSON, to [Keys].Instances followed by the
// name, and again when it changes: at once after a change of the documents,
// within five seconds otherwise. It is attached to a lease of 15 seconds, so the
// report of a process that crashes or is partitioned expires. A run that ends
// normally removes its report at once.
//
// Reports are written in the background and never delay the watch. A failure is
// logged once and retried until it is over.
type Report struct {
	Instance   string    `json:"instance"`
	Host       string    `json:"host"` // host name of the machine
	PID        int       `json:"pid"`
	Started    time.Time `json:"started"`    // when the run began
	ReportedAt time.Time `json:"reportedAt"` // on the clock of the instance

	// Inspect is where operators reach the handler of the package inspect in the instance, as host:port;
	// empty if [Options.Inspect] does not say. What is read is checked with [CheckInspect].
	Inspect string `json:"inspect,omitempty"`

	// Version is the version of Penstock that the instance was built with, and Program the module of
	// its program with its version, such as "example.com/shop v1.4.0". Empty where the build does not
	// tell.
	Version string `json:"version,omitempty"`
	Program string `json:"program,omitempty"`

	// Revision is the revision of the source that was applied last; 0 before the
	// first. It advances even if documents were rejected.
	Revision  int64 `json:"revision"`
	Rules     int   `json:"rules"`     // in force
	Documents int   `json:"documents"` // that the source has

	// Digest is the [DigestOf] the documents that the instance has read from the source,
	// those that it rejects or holds back included: equal to that of the documents in
	// etcd if it has read exactly these. Revision does not tell that: it does not say which
	// documents the instance has, and the highest revision in etcd gets lower when a document
	// is deleted. Empty in reports of versions that do not tell.
	Digest string `json:"digest,omitempty"`

	// Held are the first of these documents, by name, to show what differs: at most a
	// hundred, with names of 8 KiB together.
	Held []DocumentRevision `json:"held,omitempty"`

	// CopiedAt is set when the rules in force are a copy of those of the source at
	// that time: the instance can write its report but has not read the documents yet.
	CopiedAt time.Time `json:"copiedAt,omitzero"`

	// HeldBack says why the present documents of the source are not put in force:
	// they would remove too many rules at once. Empty if they are in force. See
	// core.Config.MaxRemoval.
	HeldBack string `json:"heldBack,omitempty"`

	// ListsHeldBack and ListsOnCopy are the names of lists of this source of which a change is
	// held back because too many entries would go at once, and that are in force as a copy
	// has them: the first hundred of each.
	ListsHeldBack []string `json:"listsHeldBack,omitempty"`
	ListsOnCopy   []string `json:"listsOnCopy,omitempty"`

	// MissingLists are the names of lists that rules in force name, other than shadows, and that the instance
	// does not have, from any source: the first hundred.
	MissingLists []string `json:"missingLists,omitempty"`

	// ListsDigest is the [ListsDigestOf] the lists of this source that the instance has, in the versions
	// that are in force: equal to that of the lists in etcd if it has exactly these. Empty if it does not
	// watch lists, and in reports of versions that do not tell. Lists are the first of them, by name: at
	// most a hundred, with names of 8 KiB together.
	ListsDigest string        `json:"listsDigest,omitempty"`
	Lists       []ListVersion `json:"lists,omitempty"`

	// Rejected are the first hundred documents, by name, whose present versions are
	// not in force for another reason. MoreRejected counts the others.
	Rejected     []Rejection `json:"rejected,omitempty"`
	MoreRejected int         `json:"moreRejected,omitempty"`

	// Unmatched are rules in force of which something is missing so far, such as a call of
	// their resource: the first hundred, by kind and name, with names of 8 KiB together.
	// MoreUnmatched counts the others.
	Unmatched     []UnmatchedRule `json:"unmatched,omitempty"`
	MoreUnmatched int             `json:"moreUnmatched,omitempty"`

	// Forced are the states that operators have forced and what they have switched off or on: the first
	// hundred, with texts of 8 KiB together. MoreForced counts the others.
	Forced     []ForcedState `json:"forced,omitempty"`
	MoreForced int           `json:"moreForced,omitempty"`
}

// UnmatchedRule is a rule in force for which no call was made so far that has all that
// the rule is for. See core.UnmatchedRule.
type UnmatchedRule struct {
	Kind       rule.Kind    `json:"kind"`
	Rule       string       `json:"rule"`
	Document   string       `json:"document"`
	Resource   string       `json:"resource,omitempty"` // that it names, or
	Match      string       `json:"match,omitempty"`    // the pattern
	Origin     string       `json:"origin,omitempty"`
	Related    string       `json:"related,omitempty"` // whose passes it counts, if that was not called
	Missing    core.Missing `json:"missing"`
	Attributes []string     `json:"attributes,omitempty"` // that no call had so far
	Except     []string     `json:"except,omitempty"`     // exceptions of which no call was made
}

// size returns how many bytes the texts have.
func (u UnmatchedRule) size() int {
	return len(u.Rule) + len(u.Document) + len(u.Resource) + len(u.Match) + len(u.Origin) + len(u.Related) +
		len(strings.Join(u.Attributes, "")) + len(strings.Join(u.Except, ""))
}

// Rejection says why a version of a document is not in force. Texts longer than
// 1 KiB are truncated.
type Rejection struct {
	Document string `json:"document"`
	Revision int64  `json:"revision"` // of the version that was rejected
	Error    string `json:"error"`
}

// watchedLists returns the registry of the lists that are watched, nil if none are, and the
// name of their source.
func (s *Source) watchedLists() (*list.Registry, string) {
	return s.lists.Load(), "etcd:" + listformat.ManifestKeys(s.keys.Lists)
}

// identity returns a report with only the fields that identify the instance.
func (s *Source) identity() Report {
	host, _ := os.Hostname() // "" on a machine without a name
	version, program := builtWith()
	return Report{
		Instance: s.opts.Instance, Host: host, PID: os.Getpid(), Started: presentTime(s.opts.Clock), Inspect: s.opts.Inspect,
		Version: truncate(version), Program: truncate(program),
	}
}

// presentTime returns the time by the wall clock, also after it was set.
func presentTime(c clock.Clock) time.Time { return clock.TimeOf(c, c.Now()) }

// withStatus returns the report with the fields that depend on the status.
func (r Report) withStatus(status core.SourceStatus) Report {
	r.Revision, r.Documents = status.Revision, len(status.Documents)
	if status.HeldBack != nil {
		r.HeldBack = status.HeldBack.Error()
	}
	if status.CopiedAt != 0 {
		r.CopiedAt = status.CopiedAt.Time()
	}
	held := heldBy(status)
	r.Digest = DigestOf(held)
	r.Held = shown(held, func(d DocumentRevision) string { return d.Name })
	r = r.withUnmatched(status).withForced(status)
	for _, l := range status.MissingLists[:min(len(status.MissingLists), maxRejections)] {
		r.MissingLists = append(r.MissingLists, truncate(l.Name))
	}
	for _, d := range status.Documents {
		r.Rules += d.Rules
		switch heldBack := (*core.HeldBackError)(nil); {
		case d.Rejected == nil, errors.As(d.Rejected, &heldBack):
		case len(r.Rejected) == maxRejections:
			r.MoreRejected++
		default:
			r.Rejected = append(r.Rejected, Rejection{
				Document: truncate(d.Name), Revision: d.RejectedRevision, Error: truncate(d.Rejected.Error()),
			})
		}
	}
	return r
}

// withUnmatched returns the report with the rules of which something is missing.
func (r Report) withUnmatched(status core.SourceStatus) Report {
	r.MoreUnmatched = status.MoreUnmatched + len(status.Unmatched)
	text := 0
	for _, u := range status.Unmatched {
		next := UnmatchedRule{
			Kind: u.Key.Kind, Rule: u.Key.Name, Document: u.Document, Resource: u.Target.Resource, Match: u.Target.Match,
			Origin: u.Target.Origin, Related: u.Related, Missing: u.Missing, Attributes: u.Attributes, Except: u.Except,
		}
		if text += next.size(); text > maxNames {
			break
		}
		r.Unmatched = append(r.Unmatched, next)
		r.MoreUnmatched--
	}
	return r
}

// truncate returns the text, truncated to what fits into a report.
func truncate(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= maxRejectionText {
		return text
	}
	const ellipsis = "…"
	end := maxRejectionText - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// shown returns the first of documents or lists: as many as a report may name.
func shown[T any](all []T, name func(T) string) []T {
	text := 0
	for i, of := range all {
		if text += len(name(of)); i == maxHeld || text > maxNames {
			return all[:i]
		}
	}
	return all
}
