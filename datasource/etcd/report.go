package etcd

import (
	"errors"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock-go/penstock/core"
)

const (
	maxRejections    = 100     // in a report
	maxRejectionText = 1 << 10 // bytes, of a document's name and of an error
)

// Report tells which documents are in force in one instance of a service. A run
// with [Options.Instance] puts it, as JSON, at [Keys].Instances followed by the
// name, and again when it changes: at once after a change of the documents,
// within five seconds otherwise. It is under a lease of 15 seconds: the report
// of a process that ends, dies or is cut off is gone after that, and at once
// when the run ends in order.
//
// Reports are made beside the watch and never hold it up. What keeps them from
// being made is logged once, and tried again until it is over.
type Report struct {
	Instance   string    `json:"instance"`
	Host       string    `json:"host"` // as the operating system calls it
	PID        int       `json:"pid"`
	Started    time.Time `json:"started"`    // when the run began
	ReportedAt time.Time `json:"reportedAt"` // on the clock of the instance

	// Revision is that of the source as it was applied last; 0 before the first
	// time. Rejected documents do not hold it back.
	Revision  int64 `json:"revision"`
	Rules     int   `json:"rules"`     // in force
	Documents int   `json:"documents"` // that the source has

	// CopiedAt is set when what is in force is a copy of what the source held then:
	// the instance can write its report, but could not read the documents yet.
	CopiedAt time.Time `json:"copiedAt,omitzero"`

	// HeldBack says why nothing of what the source holds now is put in force, "" if
	// it is: too many rules would go at once. See core.Config.MaxRemoval.
	HeldBack string `json:"heldBack,omitempty"`

	// Rejected are the documents whose present versions are not in force for
	// another reason, by name: the first hundred of them. MoreRejected counts the
	// others.
	Rejected     []Rejection `json:"rejected,omitempty"`
	MoreRejected int         `json:"moreRejected,omitempty"`
}

// Rejection tells why a version of a document is not in force. Texts longer
// than 1 KiB are cut.
type Rejection struct {
	Document string `json:"document"`
	Revision int64  `json:"revision"` // of the version that was rejected
	Error    string `json:"error"`
}

// identity returns a report that tells who makes it and no more.
func (s *Source) identity() Report {
	host, _ := os.Hostname() // a machine without a name may report as well
	return Report{
		Instance: s.opts.Instance, Host: host, PID: os.Getpid(), Started: s.opts.Clock.Now().Time(),
	}
}

// fill returns the report with what the status tells.
func (r Report) fill(status core.SourceStatus) Report {
	r.Revision, r.Documents = status.Revision, len(status.Documents)
	if status.HeldBack != nil {
		r.HeldBack = status.HeldBack.Error()
	}
	if status.CopiedAt != 0 {
		r.CopiedAt = status.CopiedAt.Time()
	}
	for _, d := range status.Documents {
		r.Rules += d.Rules
		switch heldBack := (*core.HeldBackError)(nil); {
		case d.Rejected == nil, errors.As(d.Rejected, &heldBack):
		case len(r.Rejected) == maxRejections:
			r.MoreRejected++
		default:
			r.Rejected = append(r.Rejected, Rejection{
				Document: cut(d.Name), Revision: d.RejectedRevision, Error: cut(d.Rejected.Error()),
			})
		}
	}
	return r
}

// cut returns the text, or as much of it as fits into a report.
func cut(text string) string {
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
