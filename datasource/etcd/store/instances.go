package store

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

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
	var reports Reports
	for _, pair := range found.Kvs {
		report, err := parseReport(strings.TrimPrefix(string(pair.Key), s.keys.Instances), pair.Value)
		if err != nil {
			reports.Unreadable = append(reports.Unreadable, Unreadable{Key: string(pair.Key), Err: err})
			continue
		}
		reports.Instances = append(reports.Instances, report)
	}
	return reports, nil
}

// parseReport decodes the report of an instance.
func parseReport(instance string, value []byte) (report etcd.Report, err error) {
	if err := json.Unmarshal(value, &report); err != nil {
		return etcd.Report{}, fmt.Errorf("store: no report of an instance: %w", err)
	}
	if report.Instance != instance {
		return etcd.Report{}, fmt.Errorf("store: no report of the instance %q: it names %q", instance, report.Instance)
	}
	return report, nil
}

// Instances returns the reports without unreadable values. See [Store.Reports].
func (s *Store) Instances(ctx context.Context) ([]etcd.Report, error) {
	reports, err := s.Reports(ctx)
	return reports.Instances, err
}

// WaitFor returns when every instance reports the revision or a later one; at
// once if there are no instances. An instance that stops meanwhile is no longer
// waited for; one that starts is. WaitFor polls five times a second. It calls
// progress, unless it is nil, with the reports of the instances that are still
// behind: at first, and whenever these change. When ctx ends, the error names them.
//
// An instance that reports a revision has applied it, but may have rejected some of
// its documents: see [Store.Instances].
func (s *Store) WaitFor(ctx context.Context, revision int64, progress func(waiting []etcd.Report)) error {
	timer := s.clock.NewTimer(0)
	defer timer.Stop()
	var waiting []etcd.Report
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("store: waiting for %s to report revision %d: %w", names(waiting), revision, ctx.Err())
		case <-timer.C():
		}
		reports, err := s.Instances(ctx)
		if err != nil {
			if ctx.Err() == nil {
				return err
			}
			continue
		}
		reports = slices.DeleteFunc(reports, func(r etcd.Report) bool { return r.Revision >= revision })
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
