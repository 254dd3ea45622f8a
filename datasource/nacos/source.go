package nacossource

import (
	"cmp"
	"context"
	"errors"
	"net/url"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/internal/remote"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// source delivers the rule documents in a group of Nacos. It keeps no state between runs:
// an engine may follow it again, and several engines may follow it at once.
type source struct {
	base  *url.URL
	group string
	opts  Options
}

// New returns a source of the documents in the group, read from the server at an address
// such as "nacos:8848" or "https://nacos.internal/nacos". An address without a path gets
// "/nacos".
func New(address, group string, opts Options) (core.Source, error) {
	base, addressErr := remote.Parse("nacos", address)
	if base != nil {
		base.Path = cmp.Or(base.Path, "/nacos")
	}
	opts, err := opts.complete()
	if err := errors.Join(addressErr, checkGroup(group), err); err != nil {
		return nil, err
	}
	return &source{base: base, group: group, opts: opts}, nil
}

// Name returns "nacos:", the ID of the namespace with a slash unless it is the public one,
// and the group.
func (s *source) Name() string {
	if s.opts.Namespace == "" {
		return "nacos:" + s.group
	}
	return "nacos:" + s.opts.Namespace + "/" + s.group
}

// Run implements [core.Source]. It returns ctx.Err() when ctx has ended. It tries again
// after every error, including a wrong password, which operators can correct meanwhile.
func (s *source) Run(ctx context.Context, sink core.Sink) error {
	r := &reader{source: s, client: remote.NewClient(s.base, s.opts.Transport, s.opts.TLS)}
	defer r.client.Close()
	return snapshot.Run(ctx, sink, s.opts.common(), r.next)
}
