package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/console"
)

const consoleLong = `Console serves a web page for operators: what passes and what is refused in all
instances of an application, by which rule, and the rules in etcd.

The documents and the reports of the instances come from etcd, the traffic from the
handlers of the package inspect whose addresses the instances report
(Options.Inspect). Who may write reports to etcd can have the console send requests to
any address within --dial: by default loopback and private networks. If the control
handlers of the instances need a token, --control-token-file names a file with it: it is
sent to addresses within --dial when somebody switches rules or tries a draft.

Without --tokens or --proxy-header everybody who reaches the page may look, and nobody
may change anything. --tokens names a file whose lines have a role (viewer, operator or
editor), a name and a token; the page asks for the token. --proxy-header believes what
a proxy that has signed people in says, if it connects from --trusted-proxy; --role
says what they may do. The page is served on loopback unless --listen says otherwise.

Exit code: 0 after SIGTERM or Ctrl-C, 2 for a wrong command line, 3 when it cannot
listen or etcd fails at the start.

` + connection.Help

// consoling is the flags of penstock console.
type consoling struct {
	listen       string
	tokens       string
	header       string
	proxies      []string
	roles        map[string]string
	hosts        []string
	dial         []string
	tokenFile    string
	cert, key    string
	shutdownTime time.Duration
}

func newConsole(env Env) *cobra.Command {
	c := consoling{shutdownTime: 5 * time.Second}
	cmd := &cobra.Command{
		Use:   "console --app APP [flags]",
		Short: "Serve a web page that shows all instances, and changes rules",
		Long:  consoleLong,
		Example: `  penstock console --app shop
  penstock console --app shop --tokens /etc/penstock/tokens --listen :7070 --host console.internal
  penstock console --app shop --proxy-header X-Forwarded-User --trusted-proxy 10.0.0.5/32 --role alice=editor --role '*=viewer'`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd, env) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.listen, "listen", "127.0.0.1:7070", "the `address` of the page")
	flags.StringVar(&c.tokens, "tokens", "", "a `file` with a role, a name and a token in each line")
	flags.StringVar(&c.header, "proxy-header", "", "the header `field` in which a proxy says who it has signed in")
	flags.StringArrayVar(&c.proxies, "trusted-proxy", nil, "the `network` of proxies that are believed; may be repeated")
	flags.StringToStringVar(&c.roles, "role", nil, "what somebody whom a proxy has signed in may do, as `name=role`; * is everybody else")
	flags.StringArrayVar(&c.hosts, "host", nil, "a `name` under which browsers reach the page, beside localhost and addresses; may be repeated")
	flags.StringArrayVar(&c.dial, "dial", nil, "a `network` of instances that are asked; may be repeated (default loopback and private networks)")
	flags.StringVar(&c.tokenFile, "control-token-file", "", "the `file` with the token of the control handlers of instances, if they need one; needs --dial")
	flags.StringVar(&c.cert, "tls-cert", "", "a `file` with the certificate of the page (PEM); turns TLS on")
	flags.StringVar(&c.key, "tls-key", "", "a `file` with the key of that certificate (PEM)")
	connection.AddFlags(flags)
	return cmd
}

// options returns the options of the console, less those of etcd.
func (c *consoling) options() (o console.Options, err error) {
	o.Hosts = c.hosts
	if o.Dial, err = networks("--dial", c.dial); err != nil {
		return o, err
	}
	if c.tokenFile != "" && len(c.dial) == 0 {
		return o, errors.New("--control-token-file needs --dial: name the networks of the instances, which get the token")
	}
	if o.ControlToken, err = readToken("--control-token-file", c.tokenFile); err != nil {
		return o, err
	}
	proxies, err := networks("--trusted-proxy", c.proxies)
	if err != nil {
		return o, err
	}
	roles := make(map[string]console.Role, len(c.roles))
	for name, text := range c.roles {
		if roles[name], err = console.ParseRole(text); err != nil {
			return o, fmt.Errorf("--role %s: %w", name, err)
		}
	}
	switch {
	case (c.cert == "") != (c.key == ""):
		return o, errors.New("a certificate and its key belong together: set both of --tls-cert and --tls-key")
	case c.tokens != "" && c.header != "":
		return o, errors.New("--tokens and --proxy-header are two ways to know people: leave one out")
	case (c.header == "") != (len(proxies) == 0):
		return o, errors.New("--proxy-header and --trusted-proxy belong together: set both")
	case c.header == "" && len(roles) > 0:
		return o, errors.New("--role is about people whom a proxy has signed in: add --proxy-header")
	case c.header != "":
		o.Authorize = console.ProxyHeader(c.header, proxies, roles)
	case c.tokens != "":
		o.Authorize, err = console.TokenFile(c.tokens)
	}
	return o, err
}

func networks(flag string, texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s %s: must be a network, such as 10.0.0.0/8 or 192.0.2.1/32", flag, text)
		}
		all = append(all, network)
	}
	return all, nil
}

func (c *consoling) run(cmd *cobra.Command, env Env) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	tls, err := connection.ServerTLS(cmd.Context(), connection.ServerFiles{Cert: c.cert, Key: c.key}, time.Now,
		slog.New(slog.NewTextHandler(env.Err, nil)))
	if err != nil {
		return failure{ExitFailed, err}
	}
	s, err := env.open(cmd)
	if err != nil {
		return err
	}
	defer s.close()
	options.App, _ = cmd.Flags().GetString("app")
	options.Store, options.Kinds = s.store, env.Kinds
	listener, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", c.listen)
	if err != nil {
		return failure{ExitFailed, err}
	}
	server := &http.Server{
		Handler: console.Handler(options), TLSConfig: tls, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
	}
	scheme := "http"
	if tls != nil {
		scheme = "https"
	}
	env.note("the console of %s is at %s://%s/", s.place(), scheme, listener.Addr())
	return c.serve(cmd.Context(), server, listener)
}

// serve serves until ctx ends, and then for a short time what is under way.
func (c *consoling) serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() {
		if server.TLSConfig != nil {
			ended <- server.ServeTLS(listener, "", "")
			return
		}
		ended <- server.Serve(listener)
	}()
	select {
	case err := <-ended:
		return failure{ExitFailed, err}
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.shutdownTime)
	defer cancel()
	if server.Shutdown(grace) != nil {
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return failure{ExitFailed, err}
	}
	return nil
}
