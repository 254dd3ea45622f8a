package httpsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/retry"
)

// source delivers the rule document at a URL, or those of an index. It keeps no state
// between runs: an engine may follow it again, and several engines may follow it at once.
type source struct {
	url     *url.URL // without user
	user    *url.Userinfo
	isIndex bool
	opts    Options
	lists   *listReader // of a source of lists; nil of one of rules
}

// New returns a source of one document, the one at the URL, of the scheme http or https.
// The document is named after the last part of the path.
func New(address string, opts Options) (core.Source, error) { return follow(address, false, opts) }

// NewIndex returns a source of the documents that the index at the URL lists: see the
// package comment.
func NewIndex(address string, opts Options) (core.Source, error) { return follow(address, true, opts) }

func follow(address string, index bool, opts Options) (core.Source, error) {
	s, err := newSource(address, index, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newSource(address string, isIndex bool, opts Options) (*source, error) {
	at, err := parse(address)
	if err != nil {
		return nil, err
	}
	if at.User != nil && opts.Token != nil {
		return nil, errors.New("httpsource: Options.Token is set beside a user in the URL: leave one of them out")
	}
	opts, err = opts.complete()
	if err != nil {
		return nil, err
	}
	s := &source{url: at, user: at.User, isIndex: isIndex, opts: opts}
	at.User, at.Fragment, at.RawFragment = nil, "", ""
	return s, nil
}

// parse parses a URL. Its errors do not repeat the URL, which may contain a password.
func parse(address string) (*url.URL, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("httpsource: the URL cannot be parsed: write it as https://host/path")
	case at.Scheme != "http" && at.Scheme != "https":
		return nil, fmt.Errorf("httpsource: the scheme of the URL is %q: use http or https", at.Scheme)
	case at.Host == "":
		return nil, errors.New("httpsource: the URL has no host: write it as https://host/path")
	}
	return at, nil
}

// Name returns [Options.Name], or the URL without user, password, query and fragment.
func (s *source) Name() string { return cmp.Or(s.opts.Name, display(s.url)) }

// display returns a URL without what may be secret in it.
func display(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// Run implements [core.Source]. It returns ctx.Err() when ctx has ended. It tries again
// after every error.
func (s *source) Run(ctx context.Context, sink core.Sink) error {
	f := newFollower(s, sink)
	defer f.closeIdle()
	backoff := retry.Backoff{Min: s.opts.MinBackoff, Max: s.opts.MaxBackoff}
	for ctx.Err() == nil {
		pause := s.around(s.opts.Interval)
		if err := f.poll(ctx); err == nil {
			backoff.Reset()
		} else if ctx.Err() == nil {
			f.disconnected(err)
			pause = backoff.Next()
		}
		retry.Sleep(ctx, s.opts.Clock, pause)
	}
	return ctx.Err()
}

// around returns a random time from 3/4 to 5/4 of an interval.
func (s *source) around(interval time.Duration) time.Duration {
	return interval - interval/4 + rand.N(interval/2+1) //nolint:gosec // spreads load, guards no secret
}
