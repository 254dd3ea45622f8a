// Package serve decides by the rules of an engine for programs that are not written in Go:
// for proxies that ask before they pass a request on.
//
//   - [RLS] is the rate limit service of Envoy, envoy.service.ratelimit.v3.
//   - [RLQS] is its quota service, envoy.service.rate_limit_quota.v3: it divides limits among
//     data planes, which then decide by themselves.
//   - [ExtAuthz] is its external authorization service, envoy.service.auth.v3.
//   - [ForwardAuth] is the HTTP handler that nginx (auth_request), HAProxy (in Lua), Traefik
//     (ForwardAuth) and Caddy (forward_auth) ask.
//   - [Hold] is the HTTP handler by which programs ask about calls of their own, and end them.
//
// All map a request to the call of a resource with attributes, which the rules of an
// engine are for: there is no second language of rules. The command penstock serve is a
// server of all; a program of your own registers what it needs:
//
//	server := grpc.NewServer()
//	ratelimitv3.RegisterRateLimitServiceServer(server, serve.NewRLS(engine, serve.RLSOptions{}))
//
// # Calls without an end
//
// Most of these protocols ask whether a call may begin and never say how it ended. So rules that
// need to know that, such as circuit breakers, cannot be in force here: [Source] rejects
// documents that have such rules, each with its line, and [Check] says so of a set. By a [RLS] or a [Hold]
// a client can say that a call has ended, so limits of calls under way can be served if they have
// a maxAge; where there is neither, [SourceHTTP] and [CheckHTTP] reject them, too.
package serve
