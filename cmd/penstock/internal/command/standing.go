package command

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// standing is what etcd holds and who runs by it.
type standing struct {
	revision  int64           // that made the documents what they are; 0 when there never were any
	pushed    *store.Revision // the push that made them so; nil when other tools did
	documents int
	instances []etcd.Report

	unreadable []store.Unreadable // among the reports of instances
}

func (s standing) behind(r etcd.Report) bool { return r.Revision < s.revision }

// good tells whether every instance runs by the revision, with all documents, and
// not on a copy.
func (s standing) good() bool {
	for _, r := range s.instances {
		if s.behind(r) || r.HeldBack != "" || len(r.Rejected) > 0 || !r.CopiedAt.IsZero() {
			return false
		}
	}
	return true
}

// standing reads what etcd holds and what instances report.
func (s *session) standing(ctx context.Context) (standing, error) {
	found, err := s.present(ctx)
	if err != nil {
		return standing{}, err
	}
	reports, err := request(ctx, s, s.store.Reports)
	found.instances, found.unreadable = reports.Instances, reports.Unreadable
	return found, err
}

// present reads what etcd holds: the latest of what was pushed and of what other
// tools wrote.
func (s *session) present(ctx context.Context) (standing, error) {
	history, err := request(ctx, s, s.store.History)
	if err != nil {
		return standing{}, err
	}
	first, end := s.settings.Keys.DocumentRange()
	latest, err := request(ctx, s, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, first, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(1),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
	})
	if err != nil {
		return standing{}, err
	}
	found := standing{documents: int(latest.Count)}
	if len(latest.Kvs) > 0 {
		found.revision = latest.Kvs[0].ModRevision
	}
	if len(history) > 0 && history[0].Revision >= found.revision {
		found.revision = history[0].Revision
		if history[0].Documents == found.documents { // else other tools have deleted some since
			found.pushed = &history[0]
		}
	}
	return found, nil
}

func (env Env) tellStanding(s *session, found standing, output format) {
	for _, u := range found.unreadable {
		env.warn(fmt.Sprintf("the value at %q is left out: %v: delete it unless somebody needs it", u.Key, u.Err))
	}
	if output == asJSON {
		env.writeJSON(found.json())
		return
	}
	fmt.Fprintf(env.Out, "%s: %s\n", s.place(), found)
	if len(found.instances) == 0 {
		fmt.Fprintln(env.Out, nobody)
		return
	}
	fmt.Fprintln(env.Out)
	table := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "INSTANCE\tHOST\tPID\tREVISION\tDOCUMENTS\tRULES\tREPORTED\tSTATE")
	for _, r := range found.instances {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", wording.Cell(r.Instance), wording.Cell(r.Host), r.PID,
			r.Revision, r.Documents, r.Rules, r.ReportedAt.UTC().Format(time.DateTime), found.state(r))
	}
	_ = table.Flush()
	env.tellRejections(found.instances)
	if holdingBack(found.instances) > 0 {
		fmt.Fprintln(env.Out, "\nWhat is held back is put in force by penstock confirm, or put right by penstock push or rollback.")
	}
}

// String tells what etcd holds.
func (s standing) String() string {
	if s.revision == 0 {
		return "there are no documents"
	}
	what := fmt.Sprintf("revision %d, %s", s.revision, wording.Count(s.documents, "document"))
	if s.pushed == nil {
		return what + ", written by other tools than penstock"
	}
	what += fmt.Sprintf(", pushed %s by %s", s.pushed.Time.UTC().Format(time.DateTime), wording.Cell(s.pushed.Author))
	if s.pushed.Message != "" {
		what += ": " + wording.Cell(s.pushed.Message)
	}
	return what
}

func (s standing) state(r etcd.Report) string {
	rejected := len(r.Rejected) + r.MoreRejected
	switch {
	case !r.CopiedAt.IsZero():
		return "on a copy of " + r.CopiedAt.UTC().Format(time.DateTime)
	case s.behind(r):
		return "behind"
	case r.HeldBack != "":
		return "held back"
	case rejected > 0:
		return wording.Count(rejected, "document") + " rejected"
	default:
		return "up to date"
	}
}

type instanceJSON struct {
	etcd.Report
	Behind bool `json:"behind"`
}

type unreadableJSON struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}

func (s standing) json() any {
	list := make([]instanceJSON, len(s.instances))
	for i, r := range s.instances {
		list[i] = instanceJSON{r, s.behind(r)}
	}
	var unreadable []unreadableJSON
	for _, u := range s.unreadable {
		unreadable = append(unreadable, unreadableJSON{u.Key, u.Err.Error()})
	}
	return struct {
		Revision   int64            `json:"revision"`
		Documents  int              `json:"documents"`
		Instances  []instanceJSON   `json:"instances"`
		Unreadable []unreadableJSON `json:"unreadable,omitempty"`
	}{s.revision, s.documents, list, unreadable}
}
