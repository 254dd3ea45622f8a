package serve_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/serve"
)

func TestDocumentsSayWhichCallsTheRequestsOfADomainAre(t *testing.T) {
	engine, _ := newEngine(t, `
serve:
  - {domain: shop, resource: "eu/{name|generic_key}", attributes: [user]}
  - {domain: mail, resource: mail}
flow: [{resource: eu/orders, limit: 2}, {resource: mail, limit: 1}]
hotParam:
  - {name: user, resource: eu/orders, param: user, limit: 1}
  - {name: unseen, resource: eu/orders, param: tenant, limit: 0}
  - {name: address, resource: eu/orders, param: ip, limit: 0}
`)
	client := dialRLS(t, engine, serve.RLSOptions{})
	alice := entries("generic_key", "other", "name", "orders", "user", "alice", "tenant", "acme", "remote_address", "192.0.2.1")
	assert.Equal(t, "o:o", codesOf(ask(t, client, 0, alice)), "attributes are seen that are not shown")
	assert.Equal(t, "x:x", codesOf(ask(t, client, 0, alice)))
	mailed := func(domain string, d ...string) (*rls.RateLimitResponse, error) {
		return client.ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: domain, Descriptors: descriptors(entries(d...))})
	}
	answer, err := mailed("mail", "generic_key", "orders")
	require.NoError(t, err)
	assert.Equal(t, "o:o", codesOf(answer))
	answer, err = mailed("mail", "to", "bob")
	require.NoError(t, err)
	assert.Equal(t, "x:x", codesOf(answer), "all requests of the domain are one resource")
	_, err = mailed("news", "to", "bob")
	assert.Equal(t, codes.NotFound, status.Code(err))
	load(t, engine, "flow: [{resource: orders, limit: 0}]")
	answer, err = mailed("news", "generic_key", "orders")
	require.NoError(t, err)
	assert.Equal(t, "x:x", codesOf(answer), "nothing is said of domains any more")
}

func TestRulesThatRequestsDoNotReachAreFound(t *testing.T) {
	set, err := rules.Parse("a.yaml", []byte(`
serve:
  - {domain: shop, resource: "shop/{generic_key}", attributes: [user, remote_address]}
  - {domain: mail, resource: "mail", attributes: [to]}
flow:
  - {resource: shop/orders, limit: 1}
  - {resource: shop/, limit: 1}
  - {resource: orders, limit: 1}
  - {match: "*", perResource: true, limit: 1}
hotParam:
  - {name: a, resource: shop/orders, param: [user, ip], limit: 1}
  - {name: b, resource: shop/orders, param: to, limit: 1}
  - {name: c, resource: mail, param: to, limit: 1}
  - {name: d, match: "*", param: to, limit: 1}
  - {name: e, match: "*", param: tenant, limit: 1}
`))
	require.NoError(t, err)
	require.EqualError(t, serve.Unreached(set), `rules: a.yaml:7:5: flow rule "shop/": is not reached by requests of proxies: by what serve says, none is of the resource "shop/"
rules: a.yaml:8:5: flow rule "orders": is not reached by requests of proxies: by what serve says, none is of the resource "orders"
rules: a.yaml:12:5: hotParam rule "b": is not reached by requests of proxies: serve does not show the attribute "to": add it there
rules: a.yaml:15:5: hotParam rule "e": is not reached by requests of proxies: serve does not show the attribute "tenant": add it there`)
	set.Serve = nil
	require.NoError(t, serve.Unreached(set))
}
