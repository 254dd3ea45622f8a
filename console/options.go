package console

import (
	"net/http"
	"net/netip"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/store"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Options say what a console shows, and to whom.
type Options struct {
	// Engine is the one to show. If it is nil, all instances that report to the Store are shown; without
	// a Store, it defaults to [penstock.Default].
	Engine *core.Engine

	// Store has the documents of the application, their history and the reports of its instances. Without
	// it documents cannot be read and changed here.
	Store *store.Store

	// App is the name at the top of the page. Defaults to "penstock".
	App string

	// Authorize says who sends a request, and what they may do. It may be called concurrently. If it is
	// nil, everybody may look. See [TokenFile], [ClientCertificates] and [ProxyHeader].
	Authorize func(*http.Request) (Identity, Role)

	// Hosts are the names, without a port, under which browsers reach the console, beside localhost and
	// addresses: "console.internal". Requests for other hosts are refused, since anybody can have a name
	// of their own point to the address of the console, and a page of theirs read it.
	Hosts []string

	// Dial has the networks of instances that are asked. Who may write a report to etcd may have the
	// console send requests to any address in these. Defaults to [DefaultDial].
	Dial []netip.Prefix

	// ControlToken is the token that inspect.ControlHandler and the handlers of recordings of the instances
	// ask for, if they do. It is sent to these two alone, when somebody switches rules or tries a draft, and
	// only if Dial names the networks of the instances: who may write a report to etcd, and has an address in
	// these, can learn it. It is never logged or shown. Defaults to none.
	ControlToken string

	// Kinds are the kinds of rules that the instances have beside those of Penstock.
	Kinds []rule.Definition

	anyPrivate bool // Dial is the default
}

// DefaultDial returns the networks of instances that are asked unless [Options.Dial] says otherwise: the
// machine itself, and private ones. Link-local addresses are not among them, as clouds have the
// credentials of machines there.
func DefaultDial() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"),
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("fc00::/7"),
	}
}

// complete returns the options with their defaults.
func (o Options) complete() Options {
	if o.Engine == nil && o.Store == nil {
		o.Engine = penstock.Default()
	}
	if o.App == "" {
		o.App = "penstock"
	}
	if o.Dial == nil {
		o.Dial, o.anyPrivate = DefaultDial(), true
	}
	if o.Authorize == nil {
		o.Authorize = func(*http.Request) (Identity, Role) { return "", Viewer }
	}
	return o
}

func (o Options) table() *rules.Table { return rules.NewTable(o.Kinds...) }
