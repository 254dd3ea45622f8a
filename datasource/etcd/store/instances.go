package store

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/penstock-go/penstock/datasource/etcd"
)

const pollInterval = 200 * time.Millisecond // while waiting for instances

// Reports are the values below [etcd.Keys].Instances.
type Reports struct {
	Instances  []etcd.Report // by instance
	Unreadable []Unreadable  // by key
}

// Unreadable is a value that is not a report. It does not count as an instance and
// can be deleted.
type Unreadable struct {
	Key string
	Err error // what is wrong with the value
}

// Reports returns the reports of the instances that follow the documents, and the
// keys whose values are not reports. An instance that crashes is included for up to
// 15 seconds more.
func (s *Store) Reports(ctx context.Context) (Reports, error) {
	found, err := s.client.Get(ctx, s.keys.Instances, clientv3.WithPrefix())
	if err != nil {
		return Reports{}, fmt.Errorf("store: reading %s: %w", s.keys.Instances, err)
	}
	return s.parseReports(found.Kvs), nil
}

func (s *Store) parseReports(pairs []*mvccpb.KeyValue) (reports Reports) {
	for _, pair := range pairs {
		report, err := parseReport(strings.TrimPrefix(string(pair.Key), s.keys.Instances), pair.Value)
		if err != nil {
			reports.Unreadable = append(reports.Unreadable, Unreadable{Key: string(pair.Key), Err: err})
			continue
		}
		reports.Instances = append(reports.Instances, report)
	}
	return reports
}

// Deployment is the documents in etcd and what the instances report about them, read at
// one revision.
type Deployment struct {
	Documents []etcd.DocumentRevision // all there are, by name
	Digest    string                  // their [etcd.DigestOf]
	Reports

	// Revision is the highest revision of the documents and of the last push; 0 if there
	// were never any. Deletions by other tools do not raise it.
	Revision int64

	// Pushed is the push of that revision; nil if other tools have written or deleted
	// documents since.
	Pushed *Revision
}

// Deployment returns the documents that are in etcd, and the reports of the instances.
func (s *Store) Deployment(ctx context.Context) (Deployment, error) {
	first, end := s.keys.DocumentRange()
	read, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(first, clientv3.WithRange(end), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.keys.Instances, clientv3.WithPrefix()),
		clientv3.OpGet(s.entriesPrefix(), clientv3.WithLastKey()...),
	).Commit()
	if err != nil {
		return Deployment{}, fmt.Errorf("store: reading the keys of %s, %s and %s: %w",
			s.keys.Documents, s.keys.Instances, s.keys.History, err)
	}
	now := state{revision: read.Header.Revision, documents: read.Responses[0].GetResponseRange().Kvs}
	d := Deployment{Reports: s.parseReports(read.Responses[1].GetResponseRange().Kvs), Revision: now.latestRevision()}
	for _, pair := range now.documents {
		d.Documents = append(d.Documents, etcd.DocumentRevision{Name: s.documentName(pair.Key), Revision: pair.ModRevision})
	}
	d.Digest = etcd.DigestOf(d.Documents)
	for _, pair := range read.Responses[2].GetResponseRange().Kvs {
		last, err := s.parseEntry(pair)
		if err != nil {
			return Deployment{}, err
		}
		now.lastEntry = &last
		d.Revision = max(d.Revision, last.Revision.Revision)
	}
	if now.lastEntry != nil && now.isRecorded() {
		d.Pushed = &now.lastEntry.Revision
	}
	return d, nil
}

// Holds reports whether an instance has read exactly the documents that are in etcd. Of a
// report without a digest, which instances of earlier versions write, it can only compare
// how many they are.
func (d Deployment) Holds(r etcd.Report) bool {
	if r.Digest == "" {
		return r.Documents == len(d.Documents)
	}
	return r.Digest == d.Digest
}

// IsAt reports whether an instance has reached a revision and has read exactly the
// documents that are in etcd. One that runs on a copy has not read them from etcd.
func (d Deployment) IsAt(revision int64, r etcd.Report) bool {
	return r.Revision >= revision && r.CopiedAt.IsZero() && d.Holds(r)
}

// parseReport decodes the report of an instance.
func parseReport(instance string, value []byte) (report etcd.Report, err error) {
	if err := json.Unmarshal(value, &report); err != nil {
		return etcd.Report{}, fmt.Errorf("store: no report of an instance: %w", err)
	}
	if report.Instance != instance {
		return etcd.Report{}, fmt.Errorf("store: no report of the instance %q: it names %q", instance, report.Instance)
	}
	if report.Inspect != "" && etcd.CheckInspect(report.Inspect) != nil {
		report.Inspect = "" // nobody is to dial that
	}
	return report, nil
}

// Instances returns the reports without unreadable values. See [Store.Reports].
func (s *Store) Instances(ctx context.Context) ([]etcd.Report, error) {
	reports, err := s.Reports(ctx)
	return reports.Instances, err
}

// WaitFor returns when every instance reports the revision or a later one, and that it
// has read exactly the documents that are in etcd: see [Deployment.IsAt]. It returns at
// once if there are no instances. An instance that stops meanwhile is no longer
// waited for; one that starts is. WaitFor polls five times a second, also while etcd
// is away, as in a restart. It calls progress, unless it is nil, with the reports of the
// instances that are still behind: at first, and whenever these change. When ctx ends, the
// error names them, and says why etcd could not be read at last if it could not.
//
// An instance that has read the documents may have rejected some of them: see
// [Store.Instances].
func (s *Store) WaitFor(ctx context.Context, revision int64, progress func(waiting []etcd.Report)) error {
	timer := s.clock.NewTimer(0)
	defer timer.Stop()
	var waiting []etcd.Report
	var away error
	for {
		select {
		case <-ctx.Done():
			ended := fmt.Errorf("store: waiting for %s to report revision %d: %w", names(waiting), revision, ctx.Err())
			if away != nil {
				ended = fmt.Errorf("%w; %w", ended, away)
			}
			return ended
		case <-timer.C():
		}
		found, err := s.Deployment(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			continue
		case codeOf(err) == codes.Unavailable:
			away = err
			timer.Reset(pollInterval)
			continue
		case err != nil:
			return err
		}
		away = nil
		reports := slices.DeleteFunc(found.Instances, func(r etcd.Report) bool { return found.IsAt(revision, r) })
		if len(reports) == 0 {
			return nil
		}
		if progress != nil && !reflect.DeepEqual(reports, waiting) {
			progress(reports)
		}
		waiting = reports
		timer.Reset(pollInterval)
	}
}

// names lists the names of up to ten instances and counts the others.
func names(reports []etcd.Report) string {
	const most = 10
	var names []string
	for _, r := range reports {
		names = append(names, r.Instance)
	}
	switch n := len(names); {
	case n == 0:
		return "instances"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	default:
		return strings.Join(names, ", ")
	}
}
