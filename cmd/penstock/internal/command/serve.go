package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/cmd/penstock/internal/server"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/serve"
)

const serveLong = `Serve decides for proxies, which ask before they pass a call on. Over gRPC it is
the rate limit service of Envoy (envoy.service.ratelimit.v3), its external
authorization (envoy.service.auth.v3) and with --rlqs its quota service
(envoy.service.rate_limit_quota.v3), with health checks (grpc.health.v1) and
reflection. Over HTTP, with --http, it answers Traefik (ForwardAuth), HAProxy (in Lua) and Caddy
(forward_auth), and at the path /nginx nginx (auth_request).
docs/serve.md has the configurations of proxies.

The rules are those of the documents at --rules, which are followed, or else those
in etcd. These say which domains are served, and which calls the requests are:
serve: {domain: shop, resource: "{resource|generic_key}", attributes: all}; if none
does, all are served like that. Rules that need to know whether a call failed or how
long it took cannot be served: a document that has one is rejected, with the line.
penstock validate --for rls says so before. Limits of calls under way can, with
a maxAge: by is_negative_hits a client of the rate limit service ends a call, and with
--hold a program by POST /release at --http.

The server listens on loopback only, unless it is told otherwise, and for proxies
only when the rules of all sources are in force. At --admin are metrics for
Prometheus (/metrics), a probe (/ready), and what penstock status --engine and
penstock explain --engine show; with --control-token-file also what penstock control
and penstock quota add do. If --admin names one host, etcd has its address, too: for
penstock console, and for top, status, explain and control with --app. --fleet-redis is where all servers count together the
limits of rules with scope fleet; its password is in PENSTOCK_REDIS_PASSWORD.

Certificates are read again when their files change. --copy is a directory for
copies of the rules and lists in force, with which a server starts while etcd is away.

SIGTERM ends it: health checks say NOT_SERVING, requests under way are answered, for
at most --drain.

Exit code: 0 after SIGTERM or Ctrl-C, 2 for a wrong command line, 3 when it cannot
listen, or a file or etcd cannot be read at the start.

` + connection.Help

// serving is the flags of penstock serve.
type serving struct {
	rules                []string
	lists                string
	grpc, http, admin    string
	controlToken         string // the file
	routes, proxies      []string
	resourceHeader       string
	originHeader         string
	priorityHeader       string
	priorityCallers      []string
	cert, key, clientCA  string
	fleetRedis, fleetApp string
	instance             string
	rlqs, hold           bool
	copies               string
	maxMessage           int
	maxStreams           uint32
	maxRequests          int
	drain                time.Duration
	json                 bool
}

func newServe(env Env) *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Decide for proxies, such as Envoy, nginx, HAProxy, Traefik and Caddy",
		Long:  serveLong,
		Example: `  penstock serve --rules rules/
  penstock serve --app shop --grpc :8081 --tls-cert server.pem --tls-key server.key --tls-client-ca proxies.pem
  penstock serve --rules rules/ --rlqs
  penstock serve --rules rules/ --http 127.0.0.1:8082 --route "GET /orders/{id}" --route "POST /orders"
  penstock serve --rules rules/ --http 127.0.0.1:8082 --hold
  penstock status --engine 127.0.0.1:6060`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			return s.run(cmd, env)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&s.rules, "rules", "r", nil, "follow the documents at this `path`, a file or a directory, rather than etcd; may be repeated")
	flags.StringVar(&s.lists, "lists", "", "the `directory` of the lists that rules name; without it, and without --rules, they are in etcd")
	flags.StringVar(&s.grpc, "grpc", "127.0.0.1:8081", "the `address` for gRPC; empty for none")
	flags.StringVar(&s.http, "http", "", "the `address` for proxies that ask over HTTP (default none)")
	flags.StringVar(&s.admin, "admin", "127.0.0.1:6060", "the `address` for operators; empty for none")
	flags.StringVar(&s.controlToken, "control-token-file", "", "the `file` with the token with which operators may act on rules at --admin (default nobody may)")
	flags.StringArrayVar(&s.routes, "route", nil, "a `pattern` of HTTP requests, such as \"GET /orders/{id}\", which are the resource GET:/orders/{id}; may be repeated")
	flags.StringArrayVar(&s.proxies, "trusted-proxy", nil, "the `network` of proxies and programs that may ask over HTTP, and whose X-Forwarded-For is believed; may be repeated (default loopback)")
	flags.StringVar(&s.resourceHeader, "resource-header", "", "the header `field` in which proxies over HTTP name the resource; they have to set it always")
	flags.StringVar(&s.originHeader, "origin-header", "", "the header `field` in which proxies name the caller; they have to set it always")
	flags.StringVar(&s.priorityHeader, "priority-header", "", "the header `field` in which clients of HTTP requests say how important these are, such as Penstock-Priority")
	flags.StringArrayVar(&s.priorityCallers, "priority-caller", nil, "the `network[=priority]` of clients of which that is believed, and the highest that they may choose (default normal); may be repeated")
	flags.StringVar(&s.cert, "tls-cert", "", "a `file` with the certificate of the server (PEM); turns TLS on")
	flags.StringVar(&s.key, "tls-key", "", "a `file` with the key of that certificate (PEM)")
	flags.StringVar(&s.clientCA, "tls-client-ca", "", "a `file` with CA certificates: only clients with a certificate of these are served")
	flags.StringVar(&s.fleetRedis, "fleet-redis", "", "the `addresses` of a Redis server or cluster that counts for all servers, separated by commas")
	flags.StringVar(&s.fleetApp, "fleet-app", "penstock-serve", "the `name` under which they count there")
	flags.StringVar(&s.instance, "instance", "", "the `name` of this server, for penstock status --app (default the host name)")
	flags.BoolVar(&s.rlqs, "rlqs", false, "serve quotas, too, which data planes decide by without asking")
	flags.BoolVar(&s.hold, "hold", false, "at --http, answer programs, too, that ask about their own calls (POST /hold) and say when these have ended (POST /release)")
	flags.StringVar(&s.copies, "copy", "", "the `directory` for copies of the rules and lists in etcd, to start with while that is away")
	flags.IntVar(&s.maxMessage, "max-message", 0, "how many `bytes` a message may have (default 64 KiB, with --rlqs 64 MiB)")
	flags.Uint32Var(&s.maxStreams, "max-streams", 1000, "how `many` requests of a connection are served at once")
	flags.IntVar(&s.maxRequests, "max-requests", 2000, "how `many` requests are served at once, fewer while the server waits long for a processor; more are answered UNAVAILABLE, or 503 over HTTP, at once rather than late")
	flags.DurationVar(&s.drain, "drain", 10*time.Second, "how `long` requests under way may take at the end")
	flags.BoolVar(&s.json, "log-json", false, "log JSON rather than text")
	connection.AddFlags(flags)
	return cmd
}

// check returns what is wrong with the command line.
func (s *serving) check() error {
	switch {
	case s.grpc == "" && s.http == "":
		return errors.New("there is nothing to serve: say --grpc or --http")
	case (s.cert == "") != (s.key == ""):
		return errors.New("a certificate and its key belong together: set both of --tls-cert and --tls-key")
	case s.clientCA != "" && s.cert == "":
		return errors.New("--tls-client-ca needs TLS: set --tls-cert and --tls-key")
	case s.maxMessage < 0 || s.maxStreams < 1 || s.maxRequests < 1:
		return errors.New("--max-message, --max-streams and --max-requests must be at least 1")
	case s.rlqs && s.grpc == "":
		return errors.New("--rlqs is served over gRPC: set --grpc")
	case s.hold && s.http == "":
		return errors.New("--hold is served over HTTP: set --http")
	case s.copies != "" && len(s.rules) > 0:
		return errors.New("--copy is of the rules in etcd: leave it out with --rules")
	case (s.priorityHeader == "") != (s.priorityCallers == nil):
		return errors.New("--priority-header is believed of nobody without --priority-caller: set both")
	case s.controlToken != "" && s.admin == "":
		return errors.New("--control-token-file is for --admin: set both")
	case s.drain < 0:
		return errors.New("--drain must not be negative")
	}
	return nil
}

// httpOptions returns how HTTP requests are mapped to calls.
func (s *serving) httpOptions() (serve.HTTPOptions, error) {
	options := serve.HTTPOptions{Routes: s.routes, OriginHeader: s.originHeader, PriorityHeader: s.priorityHeader}
	for _, text := range s.priorityCallers {
		network, most, named := strings.Cut(text, "=")
		from, err := netip.ParsePrefix(network)
		highest, known := rule.ParsePriority(most)
		if err != nil || named && !known {
			return options, fmt.Errorf("--priority-caller %s: must be a network, and perhaps the highest priority: 10.0.0.0/8=high", text)
		}
		options.Clients.PriorityCallers = append(options.Clients.PriorityCallers, priority.Callers{From: []netip.Prefix{from}, Max: highest})
	}
	for _, text := range s.proxies {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return options, fmt.Errorf("--trusted-proxy %s: must be a network, such as 10.0.0.0/8 or 192.0.2.1/32", text)
		}
		options.Clients.TrustedProxies = append(options.Clients.TrustedProxies, network)
	}
	return options, nil
}

// quotaOptions returns how quotas are served; nil if they are not.
func (s *serving) quotaOptions(logger *slog.Logger) *serve.RLQSOptions {
	if !s.rlqs {
		return nil
	}
	return &serve.RLQSOptions{Logger: logger}
}

// holdOptions returns how programs ask about their own calls; nil if they cannot.
func (s *serving) holdOptions(http serve.HTTPOptions) *serve.HoldOptions {
	if !s.hold {
		return nil
	}
	return &serve.HoldOptions{Clients: http.Clients.TrustedProxies}
}

// messageSize returns how many bytes a message may have. A report of quotas has all buckets of a data
// plane.
func (s *serving) messageSize() int {
	switch {
	case s.maxMessage > 0:
		return s.maxMessage
	case s.rlqs:
		return 64 << 20
	}
	return 64 << 10
}

// source returns a source of which only what can be served is in force.
func (s *serving) source(env Env, of core.Source, logger *slog.Logger) core.Source {
	if s.rlqs {
		of = serve.LogNoQuotas(of, logger, env.Kinds...)
	}
	if s.grpc == "" && !s.hold {
		return serve.SourceHTTP(of, env.Kinds...)
	}
	return serve.Source(of, env.Kinds...)
}

func (s *serving) run(cmd *cobra.Command, env Env) error {
	ctx := cmd.Context()
	if env.ExtendGrace != nil {
		env.ExtendGrace(s.drain)
	}
	options, err := s.httpOptions()
	if err != nil {
		return err
	}
	token, err := readToken("--control-token-file", s.controlToken)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(env.Err, nil))
	if s.json {
		logger = slog.New(slog.NewJSONHandler(env.Err, nil))
	}
	tls, err := connection.ServerTLS(ctx, connection.ServerFiles{Cert: s.cert, Key: s.key, ClientCA: s.clientCA}, time.Now, logger)
	if err != nil {
		return failure{ExitFailed, err}
	}
	config := core.Config{Logger: logger, Kinds: env.Kinds}
	if s.fleetRedis != "" {
		store, err := redis.Connect(redis.Options{
			Addresses: strings.Split(s.fleetRedis, ","), App: s.fleetApp,
			User: env.Getenv("PENSTOCK_REDIS_USER"), Password: env.Getenv("PENSTOCK_REDIS_PASSWORD"),
		})
		if err != nil {
			return fmt.Errorf("--fleet-redis: %w", err)
		}
		defer func() { _ = store.Close() }()
		config.Fleet = fleet.Config{Backend: store}
	}
	engine := core.New(config)
	defer engine.Close()
	ends, err := s.follow(ctx, cmd, env, engine, logger)
	if err != nil {
		return err
	}
	defer ends()
	err = server.Run(ctx, server.Config{
		Engine: engine, Logger: logger, GRPC: s.grpc, HTTP: s.http, Admin: s.admin, ControlToken: token, TLS: tls,
		ExtAuthz: options, RLQS: s.quotaOptions(logger), Hold: s.holdOptions(options),
		ForwardAuth: serve.ForwardAuthOptions{HTTPOptions: options, ResourceHeader: s.resourceHeader},
		MaxMessage:  s.messageSize(), MaxStreams: s.maxStreams, MaxRequests: s.maxRequests, Drain: s.drain,
	})
	if err != nil {
		return failure{ExitFailed, err}
	}
	return nil
}

// follow has the engine follow the sources of rules and lists. What it returns ends that.
func (s *serving) follow(
	ctx context.Context, cmd *cobra.Command, env Env, engine *core.Engine, logger *slog.Logger,
) (ends func(), err error) {
	ends = func() {}
	if len(s.rules) == 0 {
		if ends, err = s.followEtcd(ctx, cmd, env, engine, logger); err != nil {
			return nil, err
		}
	}
	for _, path := range s.rules {
		source, err := file.New(path, file.Options{})
		if err == nil {
			err = engine.Follow(ctx, s.source(env, source, logger))
		}
		if err != nil {
			return nil, fmt.Errorf("--rules %s: %w", path, err)
		}
	}
	if s.lists == "" {
		return ends, nil
	}
	watch, err := file.WatchLists(ctx, engine.Lists(), s.lists, file.Options{Logger: logger})
	if err != nil {
		ends()
		return nil, fmt.Errorf("--lists: %w", err)
	}
	before := ends
	return func() { watch.Close(); before() }, nil
}
