package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestParseReadsWhichDomainsAreServed(t *testing.T) {
	t.Parallel()
	shop := rules.Domain{Name: "shop", Resource: "{generic_key|resource}"}
	for document, want := range map[string][]rules.Domain{
		"serve: {domain: shop, resource: '{generic_key|resource}', attributes: all}\nflow: []": {shop},
		`{"serve": {"domain": "shop", "resource": "{generic_key|resource}"}}`:                  {shop},
		"serve:\n  - {domain: shop, resource: '{generic_key|resource}'}\n  - domain: mail\n    attributes: [user, '1']\n": {
			shop, {Name: "mail", Resource: "{resource|generic_key}", Attributes: rule.StringsOf("user", "1")},
		},
		"serve: {domain: shop, resource: '{generic_key|resource}', overdraw: false}": {shop},
		"serve: {domain: models, resource: '{generic_key|resource}', overdraw: True}\nflow: []": {
			{Name: "models", Resource: "{generic_key|resource}", Overdraw: true},
		},
	} {
		set, err := rules.Parse("a.yaml", []byte(document))
		require.NoError(t, err, document)
		assert.Equal(t, want, set.Serve, document)
		assert.Zero(t, set.Len())
		written, err := set.YAML()
		require.NoError(t, err)
		again, err := rules.Parse("a.yaml", written)
		require.NoError(t, err, string(written))
		assert.Equal(t, want, again.Serve, string(written))
	}
}

func TestParseSaysWhatIsWrongWithDomains(t *testing.T) {
	t.Parallel()
	for _, m := range []mistake{
		{"text", "serve: shop", []string{"1:8 serve is text: must be a mapping such as {domain: shop}, or a list"}},
		{"nothing", "flow: []\nserve:\n", []string{"2:7 serve is left empty: must be a mapping"}},
		{"empty", "serve: []", []string{"1:8 serve is an empty list"}},
		{"a list of text", "serve: [shop]", []string{"1:9 serve is text: must be"}},
		{"no domain", "serve: {}", []string{"1:8 serve.domain is missing: name the domain"}},
		{"an empty domain", `serve: {domain: ""}`, []string{`1:17 serve.domain is "": write something`}},
		{"a number", "serve: {domain: 12}", []string{`1:17 serve.domain is 12: must be text; put it in quotes, "12"`}},
		{"an unknown field", "serve:\n  domain: shop\n  attribute: all\n", []string{`3:3 unknown field "serve.attribute": did you mean "serve.attributes"?`}},
		{"twice", "serve: {domain: a, domain: b}", []string{"1:20 serve.domain is given twice, first on line 1: remove one"}},
		{"one domain twice", "serve: [{domain: a}, {domain: a}]", []string{`1:31 serve.domain is "a", as at 1:9: remove one`}},
		{"a mapping in place of text", "serve: {domain: a, resource: {generic_key}}", []string{"1:30 serve.resource is a mapping: must be text; if it begins with a brace"}},
		{"open", "serve: {domain: a, resource: 'x/{key'}", []string{`1:30 serve.resource is "x/{key": a brace is not closed: write {key}`}},
		{"closed", "serve: {domain: a, resource: 'x}'}", []string{`1:30 serve.resource is "x}": a brace is closed that was not opened`}},
		{"nested", "serve: {domain: a, resource: '{x{y}}'}", []string{`1:30 serve.resource is "{x{y}}": there is a brace within braces`}},
		{"no key", "serve: {domain: a, resource: '{x|}'}", []string{`1:30 serve.resource is "{x|}": a key is missing within the braces`}},
		{"blanks", "serve: {domain: a, resource: '{ x }'}", []string{`1:30 serve.resource is "{ x }": a key is missing within the braces, or has blanks`}},
		{"attributes of text", "serve: {domain: a, attributes: user}", []string{`1:32 serve.attributes is "user": must be all, or a list`}},
		{"no attributes", "serve: {domain: a, attributes: []}", []string{`1:32 serve.attributes is an empty list: must be all, or a list`}},
		{"overdraw of text", "serve: {domain: a, overdraw: 'true'}", []string{`1:30 serve.overdraw is "true": must be true or false`}},
		{"an anchor", "serve: {domain: &a shop}", []string{"1:17 serve.domain has an anchor"}},
		{"an alias", "flow: []\nserve: *a\n", []string{"2:8 the document cannot be read as YAML"}},
		{"a misspelled field", "serv: {domain: a}", []string{`1:1 unknown field "serv": did you mean "serve"?`}},
		{"within a rule", "flow: [{resource: a, limit: 1, serve: {domain: a}}]", []string{`1:32 flow rule "a": unknown field "serve"`}},
	} {
		m.run(t)
	}
}

func TestResourceOfARequestIsThatOfItsDomain(t *testing.T) {
	t.Parallel()
	entries := map[string]string{"generic_key": "orders", "tenant": "acme"}
	entry := func(key string) string { return entries[key] }
	for resource, want := range map[string]string{
		"":                              "orders",
		"{tenant|generic_key}":          "acme",
		"{other}":                       "shop",
		"fixed":                         "fixed",
		"eu/{other|generic_key}/{path}": "eu/orders/shop",
	} {
		d := rules.Domain{Name: "shop", Resource: resource}.WithDefaults()
		assert.Equal(t, want, d.ResourceOf(entry), resource)
	}
}

func TestDocumentsThatSayDifferentThingsOfADomainClash(t *testing.T) {
	t.Parallel()
	parse := func(name, text string) rules.Set {
		set, err := rules.Parse(name, []byte(text))
		require.NoError(t, err)
		return set
	}
	a := parse("a.yaml", "serve: {domain: shop}")
	b := parse("b.yaml", "serve: [{domain: mail}, {domain: shop, attributes: all}]")
	c := parse("c.yaml", "flow: []\nserve:\n  domain: shop\n  attributes: [user]\n")
	merged, err := rules.Merge(a, b)
	require.NoError(t, err)
	assert.Len(t, merged.Serve, 2)
	_, err = rules.Merge(a, b, c)
	require.EqualError(t, err, `rules: c.yaml:3:3: serve says of the domain "shop" other than the one at a.yaml:1:8: say the same, or say it once`)
	differences := rules.Diff(a, c)
	require.Len(t, differences, 1)
	assert.Equal(t, `serve of domain "shop" changed: attributes all -> [user]`, differences[0].String())
	assert.Equal(t, `serve of domain "mail" added`, rules.Diff(a, b)[0].String())
	assert.Equal(t, `serve of domain "shop" removed: attributes [user]`, rules.Diff(c, rules.Set{})[0].String())
}
