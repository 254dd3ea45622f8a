package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

// A file that is put in the place of a rule document by mistake may have secrets in it, and
// what is wrong with it is logged and shown.
func TestMistakesOfOtherDocumentsShowNothingOfThem(t *testing.T) {
	const secret = "5ec2e7"
	for _, document := range []string{
		secret, `"` + secret + `"`, "password " + secret, secret + ": x", "user: " + secret, "data: {key: " + secret + "}",
		"- " + secret, "[" + secret + "]", "-----BEGIN KEY-----\n" + secret + "\n-----END KEY-----\n", "user=admin\npassword=" + secret,
		`{"` + secret + `": 1}`, `{"password": "` + secret + `"}`, `["` + secret + `"]`, `{"password": ` + secret, `{"password": "` + secret,
		"&" + secret + " a", "&" + secret + " {a: b}", "*" + secret, "a: *" + secret, "flow: *" + secret, "!" + secret + " a", "a: !" + secret + " b",
		"&" + secret + " k: v", "? &" + secret + " [" + secret + "]\n: v", "? {" + secret + ": 1}\n: v", "a: &" + secret + " b\nc: *" + secret,
		"<<: *" + secret, "%" + secret, "@" + secret, "a: @" + secret, "a: 'x\n" + secret, "a: b: " + secret, "\t" + secret, "a:\n\t" + secret + ": b",
		"flow: " + secret, "flow: '" + secret + "'", "flow: [" + secret + "]", "isolation:\n- '" + secret + "'",
		"a\n---\n" + secret, "flow: []\n---\n" + secret, "flow: []\n" + secret, "flow: []\n" + secret + ": x", "flow: []\n&" + secret + " x: y",
		"resource: r\n" + secret + ": x", strings.Repeat("x", 60) + secret,
		"4711" + strings.Trim(secret, "e"), "---\n" + secret, "? " + secret, "<html>" + secret + "</html>",
	} {
		for _, name := range []string{"a.yaml", "a.json", "a"} {
			_, err := rules.Parse(name, []byte(document))
			require.Error(t, err, document)
			for _, part := range []string{secret, "5c27"} {
				assert.NotContains(t, err.Error(), part, document)
			}
		}
	}
}

func TestDocumentsNamedJSONThatBeginLikeItAreJSON(t *testing.T) {
	for document, want := range map[string]string{
		`{"flow": [{"resource": "a", "limit": +5}]}`:           "a.json:1:38: the document cannot be read as JSON: invalid character '+'",
		`{"flow": [{"resource": "a", "limit": .5}]}`:           "a.json:1:38: the document cannot be read as JSON: invalid character '.'",
		`{"flow": [{"resource": "a", "limit": 5.}]}`:           "cannot be read as JSON",
		`{"flow": [{"resource": "a", "limit": 5,}]}`:           "cannot be read as JSON",
		`{"flow": [{"resource": "a", "limit": 0x5}]}`:          "cannot be read as JSON",
		`{"flow": [{"resource": "a", "limit": 05}]}`:           "cannot be read as JSON",
		`{flow: [{resource: a, limit: 5}]}`:                    "cannot be read as JSON",
		`{"flow": [{'resource': 'a', 'limit': 5}]}`:            "cannot be read as JSON",
		`{"flow": [{"resource": "a", "limit": 5, "x": True}]}`: "cannot be read as JSON",
		`[{"resource": "a", "limit": 5}]`:                      "the document is a list: must be a mapping",
		"":                                                     "the document is empty",
		" \n":                                                  "the document is empty",
		`{"flow": [{"resource": "a", "limit": 1e-400}]}`:       "limit is 1e-400: it is too small to be told from 0",
	} {
		for _, name := range []string{"a.json", "a.JSON", "shop/a.json"} {
			_, err := rules.Parse(name, []byte(document))
			require.ErrorContains(t, err, strings.ReplaceAll(want, "a.json", name), document)
		}
	}
	for _, document := range []string{`{"flow": [{"resource": "a", "limit": 5e0}]}`, "\ufeff{}\n", ` {"flow": []}`} {
		_, err := rules.Parse("a.json", []byte(document))
		require.NoError(t, err, document)
	}
	_, err := rules.Parse("a.yaml", []byte(`{"flow": [{"resource": "a", "limit": +5}, {"resource": "b", "limit": .5}]}`))
	require.NoError(t, err, "these are numbers of YAML")
}

func TestNumbersTooSmallAreNotZero(t *testing.T) {
	for _, number := range []string{"1e-400", "-1e-400", "0.0001e-999", ".5e-330", "+9E-500"} {
		_, err := rules.Parse("a.yaml", []byte("flow: [{resource: a, limit: "+number+"}]"))
		require.ErrorContains(t, err, "limit is "+number+": it is too small to be told from 0; write 0 or a larger number")
		_, err = rules.Parse("a.yaml", []byte("hotParam: [{resource: a, param: u, limit: 5, values: {x: "+number+"}}]"))
		require.ErrorContains(t, err, "it is too small to be told from 0")
		_, err = rules.Parse("a.yaml", []byte("isolation: [{resource: a, limit: "+number+"}]"))
		require.ErrorContains(t, err, "it is too small to be told from 0")
	}
	for _, number := range []string{"0", "0.0", "-0", "0e5", "0e-999", "+0", ".0"} {
		_, err := rules.Parse("a.yaml", []byte("flow: [{resource: a, limit: "+number+"}]"))
		require.NoError(t, err, number)
	}
}
