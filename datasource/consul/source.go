package consulsource

import (
	"context"
	"errors"
	"net/url"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/internal/remote"
	"github.com/penstock-go/penstock/datasource/snapshot"
)

// source delivers the rule documents below a prefix of Consul's key-value store. It keeps
// no state between runs: an engine may follow it again, and several engines may follow it
// at once.
type source struct {
	base   *url.URL
	prefix string
	opts   Options
}

// New returns a source of the documents below the prefix, read from the agent or server at
// an address such as "127.0.0.1:8500" or "https://consul:8501". It adds a slash to a
// prefix that does not end in one, so that "penstock/shop" does not match
// "penstock/shopping/".
func New(address, prefix string, opts Options) (core.Source, error) {
	base, addressErr := remote.Parse("consul", address)
	prefix, prefixErr := completePrefix(prefix)
	opts, err := opts.complete()
	if err := errors.Join(addressErr, prefixErr, err); err != nil {
		return nil, err
	}
	return &source{base: base, prefix: prefix, opts: opts}, nil
}

// Name returns "consul:" and the prefix.
func (s *source) Name() string { return "consul:" + s.prefix }

// Run implements [core.Source]. It returns ctx.Err() when ctx has ended. It tries again
// after every error, including a missing permission, which operators can correct
// meanwhile.
func (s *source) Run(ctx context.Context, sink core.Sink) error {
	r := &reader{source: s, client: remote.NewClient(s.base, s.opts.Transport, s.opts.TLS)}
	defer r.client.Close()
	return snapshot.Run(ctx, sink, s.opts.common(), r.next)
}
