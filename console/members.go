package console

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

// instancesScreen shows each instance: its revision, what it does not have in force, and how its sources are.
type instancesScreen struct{ h *handler }

// member is an instance.
type member struct {
	instanceShown
	Host      string          `json:"host,omitempty"`
	PID       int             `json:"pid,omitempty"`
	Started   time.Time       `json:"started,omitzero"`
	Reported  time.Time       `json:"reported,omitzero"`
	Revision  int64           `json:"revision"`
	Current   bool            `json:"current"`
	CopiedAt  time.Time       `json:"copiedAt,omitzero"`
	HeldBack  string          `json:"heldBack,omitempty"`
	Rules     int             `json:"rules"`
	Documents int             `json:"documents"`
	Rejected  []rejectedShown `json:"rejected,omitempty"`
	Unmatched int             `json:"unmatched"` // rules in force that no call has matched so far
	Sources   []sourceShown   `json:"sources"`

	Version    string `json:"version,omitempty"` // of Penstock
	Program    string `json:"program,omitempty"`
	Forced     int    `json:"forced,omitempty"`     // states that are forced, and switches
	OtherLists bool   `json:"otherLists,omitempty"` // than those in etcd

	Load    *inspect.Load    `json:"load,omitempty"`
	Signals []inspect.Signal `json:"signals,omitempty"` // that its rules read
}

// rejectedShown is a document that is not in force.
type rejectedShown struct {
	Document string `json:"document"`
	Error    string `json:"error"`
}

// sourceShown is a source of an instance that answers.
type sourceShown struct {
	Name      string    `json:"name"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"`
	Error     string    `json:"error,omitempty"`
}

func (s instancesScreen) read(ctx context.Context) (any, error) {
	all, err := s.h.statuses.read(ctx)
	if err != nil {
		return nil, err
	}
	members := []member{}
	for _, of := range all {
		m := member{instanceShown: instanceShown{of.instance.name, of.instance.address, of.err}, Sources: []sourceShown{}}
		m.addStatus(&of.value)
		members = append(members, m)
	}
	if s.h.Store == nil || s.h.Engine != nil {
		for i := range members {
			members[i].Current = true
		}
		return members, nil
	}
	d, err := s.h.fleet.deployment(ctx)
	stored, known := s.h.fleet.listsOf(ctx, d.Instances)
	for i := range members {
		for _, r := range d.Instances {
			if r.Instance == members[i].Name {
				members[i].Current = d.IsAt(d.Revision, r)
				members[i].OtherLists = known && !r.HasLists(stored)
				members[i].addReport(&r)
				members[i].Revision = revisionOf(&d, r)
			}
		}
	}
	return members, err
}

// revisionOf returns the revision of the documents that an instance has: it may have read them at a later one,
// as etcd counts whatever is written.
func revisionOf(d *store.Deployment, r etcd.Report) int64 {
	if d.IsAt(d.Revision, r) {
		return d.Revision
	}
	return r.Revision
}

// addStatus adds what the instance itself says.
func (m *member) addStatus(of *inspect.Status) {
	m.Revision, m.Rules, m.Unmatched = int64(of.Revision), of.Rules, of.Unmatched
	m.Forced = len(of.Forced) + len(of.Switches)
	m.Load, m.Signals = of.Load, of.Signals
	for _, s := range of.Sources {
		m.Sources = append(m.Sources, sourceShown{s.Name, s.Connected, s.Since, s.Error})
		m.Documents += len(s.Documents)
		if s.HeldBack != "" {
			m.HeldBack = s.HeldBack
		}
		for _, d := range s.Documents {
			if d.Rejected != "" {
				m.Rejected = append(m.Rejected, rejectedShown{d.Name, d.Rejected})
			}
		}
	}
}

// addReport adds what the instance has written to etcd, which counts for the documents there.
func (m *member) addReport(r *etcd.Report) {
	m.Host, m.PID, m.Started, m.Reported = r.Host, r.PID, r.Started, r.ReportedAt
	m.Revision, m.CopiedAt, m.HeldBack = r.Revision, r.CopiedAt, r.HeldBack
	m.Rules, m.Documents, m.Unmatched = r.Rules, r.Documents, len(r.Unmatched)+r.MoreUnmatched
	m.Version, m.Program = r.Version, r.Program
	if m.Error != "" { // it cannot say so itself
		m.Forced = len(r.Forced) + r.MoreForced
	}
	m.Rejected = nil
	for _, rejected := range r.Rejected {
		m.Rejected = append(m.Rejected, rejectedShown{rejected.Document, rejected.Error})
	}
}
