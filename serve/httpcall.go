package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// httpJudge decides on calls that HTTP requests are.
type httpJudge struct {
	engine     *core.Engine
	options    HTTPOptions
	mux        *http.ServeMux // of the routes
	named      func(*http.Request) string
	answers    *nethttp.Answers
	attributes *nethttp.Attributes
	attribute  func(*http.Request, string) rule.Attribute // a method of attributes
}

// newHTTPJudge returns a judge, or what is wrong with a route.
func newHTTPJudge(engine *core.Engine, options HTTPOptions) (*httpJudge, error) {
	options.PriorityHeader = http.CanonicalHeaderKey(options.PriorityHeader)
	j := &httpJudge{
		engine: engine, options: options, mux: http.NewServeMux(), named: nethttp.PatternResource(),
		answers:    nethttp.NewAnswers(engine, options.Fields, options.Spread),
		attributes: nethttp.NewAttributes(options.Clients),
	}
	j.attribute = j.attributes.Attribute
	for _, route := range options.Routes {
		if err := j.add(route); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// add adds a route. A ServeMux panics if it is malformed, or conflicts with another.
func (j *httpJudge) add(route string) (err error) {
	_, pattern, hasMethod := strings.Cut(route, " ")
	if !hasMethod {
		pattern = route
	}
	if host, _, _ := strings.Cut(strings.TrimLeft(pattern, " \t"), "/"); host != canonicalHost(host) {
		return fmt.Errorf("serve: the route %s: write its host as %s", rule.Quote(route), rule.Quote(canonicalHost(host)))
	}
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("serve: the route %s: %v", rule.Quote(route), wrong)
		}
	}()
	j.mux.Handle(route, routed{j})
	return nil
}

// routed is the handler of the routes: the mux has set the pattern of the request, and the values
// of its wildcards.
type routed struct{ judge *httpJudge }

func (h routed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verdict, _ := w.(*verdict)
	h.judge.enter(verdict, r, h.judge.named(r))
}

// verdict is the answer to a request: a response, unless err says why there is none.
type verdict struct {
	reply
	block *core.BlockError // the refusal, or that of a shadow rule if passed
	err   error            // neither passed nor refused
}

// passed says whether the request may go on.
func (v *verdict) passed() bool { return v.err == nil && v.status == http.StatusOK }

// decide decides on a request. resource is its name, "" if the routes name it.
func (j *httpJudge) decide(ctx context.Context, r *http.Request, resource string) *verdict {
	v := &verdict{}
	r = r.WithContext(ctx)
	r.URL, r.Host = cleaned(r.URL), canonicalHost(r.Host)
	handler, _ := j.mux.Handler(r)
	switch _, known := handler.(routed); {
	case resource != "":
		j.enter(v, r, resource)
	case known:
		j.mux.ServeHTTP(v, r)
	default:
		j.enter(v, r, nethttp.Unmatched)
	}
	return v
}

// enter makes the call of a resource, and ends it.
func (j *httpJudge) enter(v *verdict, r *http.Request, resource string) {
	opts := append(make([]core.Option, 0, nethttp.UsualOptions), core.Inbound(), core.Attributes(j.attribute, r))
	origin := ""
	if field := j.options.OriginHeader; field != "" {
		if origin = r.Header.Get(field); origin != "" {
			opts = append(opts, core.Origin(origin))
		}
	}
	if p, ok := nethttp.ChosenPriority[any](j.attributes, r, j.options.PriorityHeader, nil, nil); ok {
		opts = append(opts, core.Priority(p))
	}
	guard, err := j.engine.Entry(r.Context(), resource, opts...)
	if block, ok := err.(*core.BlockError); ok { //nolint:errorlint // Entry does not wrap it
		v.block = block
		j.answers.WriteRefused(&v.reply, block, origin, opts...)
		return
	}
	if err != nil {
		v.err = err
		return
	}
	if guard.MaxAge() > 0 {
		guard.Cancel()
		v.err = fmt.Errorf("serve: rules of the resource %s count the calls under way, and this protocol does not say when one has ended: "+
			"ask by the rate limit service, or by POST "+HoldPath+": %w", rule.Quote(resource), core.ErrInvalid)
		return
	}
	defer guard.Exit()
	v.block = guard.WouldBlock()
	j.answers.SetPassed(v.Header(), resource, origin, opts...)
	v.status = http.StatusOK
}

// targetOf returns the URL of a request line. One with a fragment is none: servers differ in whether it belongs to the
// path, so that a client could leave the route, and its limit, by "/orders#".
func targetOf(uri string) (*url.URL, error) {
	if strings.Contains(uri, "#") {
		return nil, errors.New("it has a fragment, which no request has")
	}
	return url.ParseRequestURI(uri)
}

// canonicalHost returns a host in lower case and without a dot at its end. Else a client could leave the route, and its
// limit, by "SHOP.example".
func canonicalHost(host string) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i:]
	}
	return strings.ToLower(strings.TrimRight(name, ".")) + port
}

// cleaned returns a URL with the path that a server would look up: without double slashes and
// without dots, also those that are written %2e. Else a client could leave the route, and its limit, by "//orders".
func cleaned(from *url.URL) *url.URL {
	escaped := from.EscapedPath()
	if strings.Contains(escaped, "%2") {
		escaped = strings.NewReplacer("%2e", ".", "%2E", ".").Replace(escaped)
	}
	if escaped == "" || escaped[0] != '/' {
		escaped = "/" + escaped
	}
	short := path.Clean(escaped)
	if strings.HasSuffix(escaped, "/") && short != "/" {
		short += "/"
	}
	if short == from.EscapedPath() {
		return from
	}
	to := *from
	if text, err := url.PathUnescape(short); err == nil {
		to.Path, to.RawPath = text, short
	}
	return &to
}
