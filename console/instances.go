package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

const (
	// maxInstances is how many instances are asked and shown: whoever may write to etcd may report any number.
	maxInstances = 200

	// maxRejected is how many rejected documents of a report are kept.
	maxRejected = 100

	// etcdTimeout is how long etcd may take to answer.
	etcdTimeout = 5 * time.Second

	// reportsAge is how old the reports may be that instances are known by.
	reportsAge = 900 * time.Millisecond
)

// instance is a process that the console asks.
type instance struct {
	name    string
	address string // as it is shown; "" for this process
	base    string // of URLs
	client  *http.Client
	local   http.Handler // that is asked in place of an address; nil for other processes
	problem string       // why it cannot be asked, "" if it can
	token   controlToken
}

// controlToken is what requests that change something, or give away who called, are sent with.
type controlToken struct {
	text   string // "" for none
	unsure bool   // it is not known which networks may have it
}

// addTo adds the token to a request.
func (t controlToken) addTo(r *http.Request) error {
	switch {
	case t.text == "":
		return nil
	case t.unsure:
		return errors.New("the token is not sent to it: say with Options.Dial, or --dial, in which networks the instances are")
	}
	r.Header.Set("Authorization", "Bearer "+t.text)
	return nil
}

// hidden returns an error without the token, which an instance may have repeated.
func (t controlToken) hidden(err error) error {
	if err == nil || t.text == "" || !strings.Contains(err.Error(), t.text) {
		return err
	}
	if failed := (answerError{}); errors.As(err, &failed) {
		return answerError{failed.status, strings.ReplaceAll(failed.text, t.text, "…")}
	}
	return errors.New(strings.ReplaceAll(err.Error(), t.text, "…"))
}

// ask reads what the package inspect answers at a path.
func (i instance) ask(ctx context.Context, path string, query url.Values, into any) error {
	at := i.base + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	if i.local != nil {
		return askInProcess(ctx, i.local, at, into)
	}
	return fetch(ctx, i.client, at, into)
}

// instances finds the processes of the application.
type instances struct {
	store  *store.Store
	local  *instance // this process, if only that is shown
	remote *http.Client
	token  controlToken

	mu      sync.Mutex // guards what follows
	known   store.Deployment
	more    int // instances that are left out of it
	err     error
	at      time.Time
	reading chan struct{} // closed when etcd has answered, nil while it is not asked
	good    []etcd.Report // that etcd had when it answered last
	goodAt  time.Time

	goodMore int // that are left out of good
}

func newInstances(o *Options) *instances {
	of := &instances{store: o.Store, token: controlToken{o.ControlToken, o.anyPrivate}}
	if o.Engine == nil {
		of.remote = newRemoteClient(o.Dial, tellTimeout)
		return of
	}
	of.local = &instance{name: "this process", base: "http://localhost/", local: inspect.Handler(o.Engine, inspect.Options{})}
	return of
}

// list returns the instances.
func (of *instances) list(ctx context.Context) ([]instance, error) {
	if of.local != nil {
		return []instance{*of.local}, nil
	}
	reports, more, err := of.reports(ctx)
	if err != nil {
		return nil, err
	}
	var all []instance
	for _, r := range reports {
		i := instance{name: r.Instance, address: r.Inspect, base: "http://" + r.Inspect + "/", client: of.remote, token: of.token}
		if r.Inspect == "" {
			i.problem = "it does not report where its inspect handler is: set Options.Inspect of its source"
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b instance) int { return strings.Compare(a.name, b.name) })
	if more > 0 {
		problem := fmt.Sprintf("the console asks and shows %d instances, first of all those that it knew before: are all of these reports true?", maxInstances)
		all = append(all, instance{name: fmt.Sprintf("%d more", more), problem: problem})
	}
	return all, nil
}

// deployment returns the documents in etcd and the reports of instances, as they were within the last
// second. While etcd takes long to answer, they are those of the last few seconds, or there is an error.
func (of *instances) deployment(ctx context.Context) (store.Deployment, error) {
	of.mu.Lock()
	if time.Since(of.at) < reportsAge {
		defer of.mu.Unlock()
		return of.known, of.err
	}
	done, isFirst := of.reading, of.at.IsZero()
	if done == nil {
		done = make(chan struct{})
		of.reading = done
		go of.read(done) //nolint:gosec // others wait for the answer, too
	}
	of.mu.Unlock()
	wait := etcdTimeout
	if !isFirst {
		wait = patience
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-ctx.Done():
		return store.Deployment{}, ctx.Err()
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.err == nil && time.Since(of.at) > freshness {
		return store.Deployment{}, errNoEtcd
	}
	return of.known, of.err
}

var errNoEtcd = errors.New("etcd does not answer")

// read reads what deployment returns. Nobody waits for it for long.
func (of *instances) read(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), etcdTimeout)
	defer cancel()
	found, err := of.store.Deployment(ctx)
	of.mu.Lock()
	defer of.mu.Unlock()
	of.heard(found, err, time.Now())
	of.reading = nil
	close(done)
}

// heard notes what etcd has answered, and when. The caller holds of.mu.
func (of *instances) heard(found store.Deployment, err error, at time.Time) {
	of.more = of.bound(&found)
	of.known, of.err, of.at = found, err, at
	if err == nil {
		of.good, of.goodMore, of.goodAt = found.Instances, of.more, of.at
	}
}

// bound leaves out what is too much of the reports, and returns how many of them that are. Those of instances
// that were known before stay, then those whose names come first.
func (of *instances) bound(d *store.Deployment) (more int) {
	before := make(map[string]bool, len(of.good))
	for _, r := range of.good {
		before[r.Instance] = true
	}
	slices.SortStableFunc(d.Instances, func(a, b etcd.Report) int {
		switch {
		case before[a.Instance] == before[b.Instance]:
			return 0
		case before[a.Instance]:
			return -1
		}
		return 1
	})
	d.Unreadable = nil // they are not shown
	if more = len(d.Instances) - maxInstances; more > 0 {
		d.Instances = slices.Clone(d.Instances[:maxInstances])
	}
	for i := range d.Instances {
		if r := &d.Instances[i]; len(r.Rejected) > maxRejected {
			r.MoreRejected += len(r.Rejected) - maxRejected
			r.Rejected = slices.Clone(r.Rejected[:maxRejected])
		}
	}
	return max(0, more)
}

// reports returns the reports of instances, and how many more there are. While etcd is away they are those that
// it had last: rules have to be switched off then, too.
func (of *instances) reports(ctx context.Context) (reports []etcd.Report, more int, err error) {
	d, err := of.deployment(ctx)
	of.mu.Lock()
	defer of.mu.Unlock()
	switch {
	case err == nil || ctx.Err() != nil:
		return d.Instances, of.more, err
	case of.goodAt.IsZero():
		return nil, 0, err
	}
	return of.good, of.goodMore, nil
}

// knownSince says when etcd had the reports by which instances are known while it is away.
func (of *instances) knownSince() time.Time {
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.goodAt
}

// listsOf returns the versions of the lists in etcd, if any of the instances tells which it has. They are
// not known if etcd does not say, or only to those who may read them.
func (of *instances) listsOf(ctx context.Context, reports []etcd.Report) (stored []etcd.ListVersion, known bool) {
	if !slices.ContainsFunc(reports, func(r etcd.Report) bool { return r.ListsDigest != "" }) {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	lists, err := of.store.Lists(ctx)
	return store.Versions(lists), err == nil
}
