package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

// fleetStatus is the documents and lists in etcd, and the instances that follow them.
type fleetStatus struct {
	store.Deployment
	lists   []etcd.ListVersion
	listErr error // why the lists are not known
	answers answers[inspect.Status]
}

// behind reports whether an instance has not read the documents that are in etcd.
func (s fleetStatus) behind(r etcd.Report) bool { return !s.IsAt(s.Revision, r) }

// upToDate reports whether every instance runs the revision, with all documents, and not
// on a copy.
func (s fleetStatus) upToDate() bool {
	for _, r := range s.Instances {
		if len(r.ListsHeldBack) > 0 || len(r.ListsOnCopy) > 0 || !s.hasLists(r) {
			return false
		}
		if len(r.MissingLists) > 0 || s.behind(r) || r.HeldBack != "" || len(r.Rejected) > 0 || !r.CopiedAt.IsZero() {
			return false
		}
	}
	return true
}

// hasLists reports whether an instance has the lists that are in etcd in force, as far as that is known.
func (s fleetStatus) hasLists(r etcd.Report) bool { return s.listErr != nil || r.HasLists(s.lists) }

// fleetStatus reads the documents and lists in etcd and the reports of the instances.
func (s *session) fleetStatus(ctx context.Context) (fleetStatus, error) {
	found, err := read(ctx, s, s.store.Deployment)
	if err != nil {
		return fleetStatus{}, err
	}
	status := fleetStatus{Deployment: found}
	if slices.ContainsFunc(found.Instances, func(r etcd.Report) bool { return r.ListsDigest != "" }) {
		// Who may read documents and reports may not read lists, perhaps.
		lists, err := read(ctx, s, s.store.Lists)
		status.lists, status.listErr = store.Versions(lists), err
	}
	return status, nil
}

func (env Env) printStatus(s *session, found fleetStatus, output format) {
	for _, u := range found.Unreadable {
		env.warn(fmt.Sprintf("the value at %q is left out: %v: delete it unless somebody needs it", u.Key, u.Err))
	}
	if found.listErr != nil {
		env.warn(fmt.Sprintf("lists are not compared: %v", found.listErr))
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
	fmt.Fprintln(table, "INSTANCE\tHOST\tPID\tVERSION\tREVISION\tDOCUMENTS\tRULES\tREPORTED\tSTATE")
	for _, r := range found.Instances {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\t%s\n", wording.Cell(r.Instance), wording.Cell(r.Host), r.PID,
			cmp.Or(wording.Cell(r.Version), "-"), r.Revision, r.Documents, r.Rules, r.ReportedAt.UTC().Format(time.DateTime), found.state(r))
	}
	_ = table.Flush()
	env.printAbout(found.Instances, found.differences)
	env.printAbout(found.Instances, found.listDifferences)
	env.printAbout(found.Instances, lacksLists)
	env.printAbout(found.Instances, found.forced)
	env.printAbout(found.Instances, found.outOfOrder)
	env.printRejections(found.Instances)
	if countHoldingBack(found.Instances) > 0 {
		fmt.Fprintln(env.Out, "\nWhat is held back is put in force by penstock confirm, or put right by penstock push or rollback.")
	}
}

// lacksLists returns texts about lists that rules in force name and an instance does not have, to be printed
// after its name.
func lacksLists(r etcd.Report) (texts []string) {
	for _, name := range r.MissingLists {
		texts = append(texts, fmt.Sprintf(": list %s, which rules in force name, is missing", wording.Cell(name)))
	}
	return texts
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
	case !s.hasLists(r):
		return "other lists"
	case len(r.MissingLists) > 0:
		return wording.Count(len(r.MissingLists), "list") + " missing"
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
		texts = append(texts, ": not read yet: "+wording.List(missing))
	}
	if len(held) > 0 {
		texts = append(texts, ": not in etcd any more: "+wording.List(slices.Sorted(maps.Keys(held))))
	}
	return texts
}

// listDifferences returns texts about the lists that an instance has and those in etcd, to be printed after
// its name. If its report does not name all lists, the names that come after the last one are left out.
func (s fleetStatus) listDifferences(r etcd.Report) (texts []string) {
	if s.hasLists(r) {
		return nil
	}
	has := make(map[string]string, len(r.Lists))
	for _, l := range r.Lists {
		has[l.Name] = l.Digest
	}
	isCut := r.ListsDigest != etcd.ListsDigestOf(r.Lists)
	for _, l := range s.lists {
		digest, there := has[l.Name]
		delete(has, l.Name)
		switch {
		case !there && isCut && (len(r.Lists) == 0 || l.Name > r.Lists[len(r.Lists)-1].Name):
		case !there:
			texts = append(texts, fmt.Sprintf(": list %s is missing", wording.Cell(l.Name)))
		case digest != l.Digest:
			texts = append(texts, fmt.Sprintf(": list %s is of digest %s, in etcd of %s", wording.Cell(l.Name),
				shortDigest(digest), shortDigest(l.Digest)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		texts = append(texts, fmt.Sprintf(": list %s is not in etcd any more", wording.Cell(name)))
	}
	if len(texts) == 0 {
		texts = []string{": other lists than those in etcd"}
	}
	return texts
}

// shortDigest returns as much of a digest as people compare.
func shortDigest(digest string) string {
	return cmp.Or(wording.Cell(digest[:min(len(digest), 12)]), "unknown")
}

// forced returns texts about what operators have forced in an instance, to be printed after its name: as it
// says itself, or else as it has reported.
func (s fleetStatus) forced(r etcd.Report) (texts []string) {
	forced, more := r.Forced, r.MoreForced
	if answer := s.answers[r.Instance]; answer.asked && answer.err == nil {
		forced, more = nil, 0
		add := func(of []inspect.Forced, isSwitch bool) {
			for _, f := range of {
				forced = append(forced, etcd.ForcedState{
					Kind: f.Kind, Rule: f.Rule, Resource: f.Resource, State: f.State, Switch: isSwitch, By: f.By, Reason: f.Reason, Until: f.Until,
				})
			}
		}
		add(answer.value.Switches, true)
		add(answer.value.Forced, false)
	}
	for i := range forced {
		texts = append(texts, forcedText(&forced[i]))
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf(": %s more forced or switched", wording.Count(more, "rule")))
	}
	return texts
}

// outOfOrder returns texts about sources and lists of an instance that has answered and that are not as they
// should be, to be printed after its name.
func (s fleetStatus) outOfOrder(r etcd.Report) (texts []string) {
	answer := s.answers[r.Instance]
	if !answer.asked || answer.err != nil {
		return nil
	}
	for _, source := range answer.value.Sources {
		if state := stateOfSource(source); state != inForce {
			texts = append(texts, fmt.Sprintf(": %s: %s", wording.Cell(source.Name), wording.Cell(state)))
		}
	}
	for _, l := range answer.value.Lists {
		if state := stateOfList(l); state != inForce {
			texts = append(texts, fmt.Sprintf(": list %s: %s", wording.Cell(l.Name), wording.Cell(state)))
		}
	}
	return texts
}

type instanceJSON struct {
	etcd.Report
	Behind     bool `json:"behind"`
	OtherLists bool `json:"otherLists,omitempty"` // than those in etcd

	// What the instance itself says, if it was asked, or why it did not answer.
	Status *inspect.Status `json:"status,omitempty"`
	Error  string          `json:"error,omitempty"`
}

type unreadableJSON struct {
	Key   string `json:"key"`
	Error string `json:"error"`
}

func (s fleetStatus) json() any {
	list := make([]instanceJSON, len(s.Instances))
	for i, r := range s.Instances {
		list[i] = instanceJSON{Report: r, Behind: s.behind(r), OtherLists: !s.hasLists(r), Error: s.answers.error(r.Instance)}
		if answer := s.answers[r.Instance]; answer.asked && answer.err == nil {
			list[i].Status = &answer.value
		}
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
