package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// fleetStatus is the documents in etcd and the instances that follow them.
type fleetStatus struct{ store.Deployment }

// behind reports whether an instance has not read the documents that are in etcd.
func (s fleetStatus) behind(r etcd.Report) bool { return !s.IsAt(s.Revision, r) }

// upToDate reports whether every instance runs the revision, with all documents, and not
// on a copy.
func (s fleetStatus) upToDate() bool {
	for _, r := range s.Instances {
		if len(r.ListsHeldBack) > 0 || len(r.ListsOnCopy) > 0 {
			return false
		}
		if s.behind(r) || r.HeldBack != "" || len(r.Rejected) > 0 || !r.CopiedAt.IsZero() {
			return false
		}
	}
	return true
}

// fleetStatus reads the documents in etcd and the reports of the instances.
func (s *session) fleetStatus(ctx context.Context) (fleetStatus, error) {
	found, err := request(ctx, s, s.store.Deployment)
	return fleetStatus{found}, err
}

func (env Env) printStatus(s *session, found fleetStatus, output format) {
	for _, u := range found.Unreadable {
		env.warn(fmt.Sprintf("the value at %q is left out: %v: delete it unless somebody needs it", u.Key, u.Err))
	}
	if output == asJSON {
		env.writeJSON(found.json())
		return
	}
	fmt.Fprintf(env.Out, "%s: %s\n", s.place(), found)
	if len(found.Instances) == 0 {
		fmt.Fprintln(env.Out, noInstances)
		return
	}
	fmt.Fprintln(env.Out)
	table := tabwriter.NewWriter(env.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "INSTANCE\tHOST\tPID\tREVISION\tDOCUMENTS\tRULES\tREPORTED\tSTATE")
	for _, r := range found.Instances {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", wording.Cell(r.Instance), wording.Cell(r.Host), r.PID,
			r.Revision, r.Documents, r.Rules, r.ReportedAt.UTC().Format(time.DateTime), found.state(r))
	}
	_ = table.Flush()
	env.printAbout(found.Instances, found.differences)
	env.printRejections(found.Instances)
	if countHoldingBack(found.Instances) > 0 {
		fmt.Fprintln(env.Out, "\nWhat is held back is put in force by penstock confirm, or put right by penstock push or rollback.")
	}
}

// String describes the revision in etcd.
func (s fleetStatus) String() string {
	if s.Revision == 0 {
		return "there are no documents"
	}
	what := fmt.Sprintf("revision %d, %s", s.Revision, wording.Count(len(s.Documents), "document"))
	if s.Pushed == nil {
		return what + ", written by other tools than penstock"
	}
	what += fmt.Sprintf(", pushed %s by %s", s.Pushed.Time.UTC().Format(time.DateTime), wording.Cell(s.Pushed.Author))
	if s.Pushed.Message != "" {
		what += ": " + wording.Cell(s.Pushed.Message)
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
	case r.Digest == "": // an earlier version does not tell which documents it has
		return "up to date by its revision"
	default:
		return "up to date"
	}
}

// differences returns texts about the documents that an instance has read and those in
// etcd, to be printed after its name. If its report does not name all that it has read,
// the names that come after the last one are left out.
func (s fleetStatus) differences(r etcd.Report) (texts []string) {
	if r.Digest == "" || s.Holds(r) || len(r.Held) == 0 && r.Documents > 0 {
		return nil
	}
	held := make(map[string]int64, len(r.Held))
	for _, d := range r.Held {
		held[wording.Cell(d.Name)] = d.Revision
	}
	var missing []string
	for _, d := range s.Documents {
		if len(r.Held) < r.Documents && d.Name > r.Held[len(r.Held)-1].Name {
			break
		}
		name := wording.Cell(d.Name)
		if held[name] != d.Revision {
			missing = append(missing, fmt.Sprintf("%s of revision %d", name, d.Revision))
		}
		delete(held, name)
	}
	if len(missing) > 0 {
		texts = append(texts, " has not read "+wording.List(missing))
	}
	if len(held) > 0 {
		texts = append(texts, " still has "+wording.List(slices.Sorted(maps.Keys(held)))+", not in etcd any more")
	}
	return texts
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
	list := make([]instanceJSON, len(s.Instances))
	for i, r := range s.Instances {
		list[i] = instanceJSON{r, s.behind(r)}
	}
	var unreadable []unreadableJSON
	for _, u := range s.Unreadable {
		unreadable = append(unreadable, unreadableJSON{u.Key, u.Err.Error()})
	}
	return struct {
		Revision   int64                `json:"revision"`
		Documents  int                  `json:"documents"`
		Instances  []instanceJSON       `json:"instances"`
		Unreadable []unreadableJSON     `json:"unreadable,omitempty"`
		Unmatched  []etcd.UnmatchedRule `json:"unmatched,omitempty"` // at every instance
	}{s.Revision, len(s.Documents), list, unreadable, unmatchedBy(s.Instances, anyDocument).judged()}
}
