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

// fleetStatus is the revision in etcd and the instances that follow it.
type fleetStatus struct {
	revision  int64           // of the present documents; 0 if there were never any
	pushed    *store.Revision // push of that revision; nil if other tools have written
	documents int
	instances []etcd.Report

	unreadable []store.Unreadable // values that are not reports
}

func (s fleetStatus) behind(r etcd.Report) bool { return r.Revision < s.revision }

// upToDate reports whether every instance runs the revision, with all documents, and not
// on a copy.
func (s fleetStatus) upToDate() bool {
	for _, r := range s.instances {
		if len(r.ListsHeldBack) > 0 || len(r.ListsOnCopy) > 0 {
			return false
		}
		if s.behind(r) || r.HeldBack != "" || len(r.Rejected) > 0 || !r.CopiedAt.IsZero() {
			return false
		}
	}
	return true
}

// fleetStatus reads the revision in etcd and the reports of the instances.
func (s *session) fleetStatus(ctx context.Context) (fleetStatus, error) {
	found, err := s.present(ctx)
	if err != nil {
		return fleetStatus{}, err
	}
	reports, err := request(ctx, s, s.store.Reports)
	found.instances, found.unreadable = reports.Instances, reports.Unreadable
	return found, err
}

// present reads the revision in etcd: the later one of the last push and the last write
// of other tools.
func (s *session) present(ctx context.Context) (fleetStatus, error) {
	history, err := request(ctx, s, s.store.History)
	if err != nil {
		return fleetStatus{}, err
	}
	first, end := s.settings.Keys.DocumentRange()
	latest, err := request(ctx, s, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, first, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(1),
			clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
	})
	if err != nil {
		return fleetStatus{}, err
	}
	found := fleetStatus{documents: int(latest.Count)}
	if len(latest.Kvs) > 0 {
		found.revision = latest.Kvs[0].ModRevision
	}
	if len(history) > 0 && history[0].Revision >= found.revision {
		found.revision = history[0].Revision
		if history[0].Documents == found.documents { // otherwise other tools have deleted some since
			found.pushed = &history[0]
		}
	}
	return found, nil
}

func (env Env) printStatus(s *session, found fleetStatus, output format) {
	for _, u := range found.unreadable {
		env.warn(fmt.Sprintf("the value at %q is left out: %v: delete it unless somebody needs it", u.Key, u.Err))
	}
	if output == asJSON {
		env.writeJSON(found.json())
		return
	}
	fmt.Fprintf(env.Out, "%s: %s\n", s.place(), found)
	if len(found.instances) == 0 {
		fmt.Fprintln(env.Out, noInstances)
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
	env.printRejections(found.instances)
	if countHoldingBack(found.instances) > 0 {
		fmt.Fprintln(env.Out, "\nWhat is held back is put in force by penstock confirm, or put right by penstock push or rollback.")
	}
}

// String describes the revision in etcd.
func (s fleetStatus) String() string {
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

func (s fleetStatus) state(r etcd.Report) string {
	rejected := len(r.Rejected) + r.MoreRejected
	switch {
	case !r.CopiedAt.IsZero():
		return "on a copy of " + r.CopiedAt.UTC().Format(time.DateTime)
	case s.behind(r):
		return "behind"
	case r.HeldBack != "":
		return "held back"
	case len(r.ListsHeldBack) > 0:
		return "held back: " + wording.Count(len(r.ListsHeldBack), "list")
	case len(r.ListsOnCopy) > 0:
		return wording.Count(len(r.ListsOnCopy), "list") + " on a copy"
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

func (s fleetStatus) json() any {
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
