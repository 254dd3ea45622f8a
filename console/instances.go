package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/inspect"
)

const (
	// maxInstances is how many instances are asked.
	maxInstances = 200

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
	problem string // why it cannot be asked, "" if it can
}

// ask reads what the package inspect answers at a path.
func (i instance) ask(ctx context.Context, path string, query url.Values, into any) error {
	at := i.base + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	return fetch(ctx, i.client, at, into)
}

// instances finds the processes of the application.
type instances struct {
	store  *store.Store
	local  *instance // this process, if only that is shown
	remote *http.Client

	mu    sync.Mutex // guards what follows
	known store.Deployment
	err   error
	at    time.Time
}

func newInstances(o *Options) *instances {
	of := &instances{store: o.Store}
	if o.Engine == nil {
		of.remote = newRemoteClient(o.Dial, askTimeout)
		return of
	}
	client := &http.Client{Transport: inProcess{inspect.Handler(o.Engine)}}
	of.local = &instance{name: "this process", base: "http://localhost/", client: client}
	return of
}

// list returns the instances.
func (of *instances) list(ctx context.Context) ([]instance, error) {
	if of.local != nil {
		return []instance{*of.local}, nil
	}
	d, err := of.deployment(ctx)
	if err != nil {
		return nil, err
	}
	var all []instance
	for _, r := range d.Instances {
		i := instance{name: r.Instance, address: r.Inspect, base: "http://" + r.Inspect + "/", client: of.remote}
		switch {
		case r.Inspect == "":
			i.problem = "it does not report where its inspect handler is: set Options.Inspect of its source"
		case len(all) >= maxInstances:
			i.problem = "there are too many instances to ask all of them"
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b instance) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// deployment returns the documents in etcd and the reports of instances, as they were within the last
// second.
func (of *instances) deployment(ctx context.Context) (store.Deployment, error) {
	of.mu.Lock()
	defer of.mu.Unlock()
	if time.Since(of.at) < reportsAge {
		return of.known, of.err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	of.known, of.err = of.store.Deployment(ctx)
	of.at = time.Now()
	return of.known, of.err
}
