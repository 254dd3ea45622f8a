package nethttp_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// item is an Item of a List: a String with Integer parameters.
type item struct {
	name       string
	parameters map[string]int64
}

// What may stand in the fields, by RFC 9651: a List of Strings with parameters
// whose values are Integers of at most 15 digits and not negative.
var (
	itemSyntax      = regexp.MustCompile(`^"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"((?:; *[a-z*][a-z0-9_.*-]*=[0-9]{1,15})*)`)
	separatorSyntax = regexp.MustCompile(`^[ \t]*,[ \t]*`)
)

// parseList reads a field by the grammar of the draft: one that breaks it fails
// the test, and so does an empty list.
func parseList(t require.TestingT, header http.Header, field string) []item {
	values := header.Values(field)
	require.Len(t, values, 1, "field %s", field)
	rest := values[0]
	var list []item
	for {
		match := itemSyntax.FindStringSubmatch(rest)
		require.NotNil(t, match, "no item at %q", rest)
		list = append(list, item{unescape(match[1]), parseParameters(t, match[2])})
		rest = rest[len(match[0]):]
		if rest == "" {
			return list
		}
		separator := separatorSyntax.FindString(rest)
		require.NotEmpty(t, separator, "no separator at %q", rest)
		rest = rest[len(separator):]
	}
}

func parseParameters(t require.TestingT, text string) map[string]int64 {
	parameters := make(map[string]int64)
	for parameter := range strings.SplitSeq(text, ";") {
		if parameter == "" {
			continue
		}
		key, value, _ := strings.Cut(strings.TrimLeft(parameter, " "), "=")
		number, err := strconv.ParseInt(value, 10, 64)
		require.NoError(t, err)
		parameters[key] = number
	}
	return parameters
}

func unescape(s string) string { return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s) }
