package rules

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The functions here read a value of a document, or tell what is wrong with it,
// and write one. What they write they read back as the same value.

func readText(n node) (string, string) {
	switch n.kind {
	case kindText:
		if n.text == "" {
			return "", `is "": write something or leave the field out`
		}
		return n.text, ""
	case kindNumber, kindBoolean:
		return "", fmt.Sprintf("is %v: must be text; put it in quotes, %q", n, n.text)
	default:
		return "", fmt.Sprintf("is %v: must be text; if it begins with a bracket, put it in quotes", n)
	}
}

func writeText[V ~string](v V) node { return node{kind: kindText, text: string(v)} }

// readChoice reads text that is one of the values. Empty text is left to whoever
// knows the default.
func readChoice[V ~string](n node, values []V) (V, string) {
	if n.kind == kindText && (n.text == "" || slices.Contains(values, V(n.text))) {
		return V(n.text), ""
	}
	quoted, names := make([]string, len(values)), make([]string, len(values))
	for i, v := range values {
		quoted[i], names[i] = strconv.Quote(string(v)), string(v)
	}
	if meant := Nearest(n.text, names); n.kind == kindText && meant != "" {
		return "", fmt.Sprintf("is %v: did you mean %q?", n, meant)
	}
	last := len(quoted) - 1
	return "", fmt.Sprintf("is %v: must be %s or %s", n, strings.Join(quoted[:last], ", "), quoted[last])
}

func readBoolean(n node) (bool, string) {
	if n.kind != kindBoolean {
		return false, fmt.Sprintf("is %v: must be true or false%s", n, unquoted(n, kindBoolean))
	}
	return strings.EqualFold(n.text, "true"), ""
}

func writeBoolean(v bool) node { return node{kind: kindBoolean, text: strconv.FormatBool(v)} }

// leadingZero matches what YAML 1.1 takes for octal and YAML 1.2 for decimal.
var leadingZero = regexp.MustCompile(`^[-+]?0[0-9]`)

func readNumber(n node) (float64, string) {
	if n.kind != kindNumber {
		return 0, fmt.Sprintf("is %v: must be a number, such as 100 or 2.5%s", n, unquoted(n, kindNumber))
	}
	if leadingZero.MatchString(n.text) {
		return 0, fmt.Sprintf("is %v: write the number without a leading zero", n)
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, fmt.Sprintf("is %v: must be a decimal number, such as 100 or 2.5", n)
	}
	return v, "" // infinite when beyond float64: no range allows that
}

func writeNumber(v float64) node {
	format := byte('f')
	if size := math.Abs(v); size != 0 && size < 1e-6 || size >= 1e21 {
		format = 'e'
	}
	return node{kind: kindNumber, text: strconv.FormatFloat(v, format, -1, 64)}
}

func readWhole(n node) (int, string) {
	v, fault := readNumber(n)
	switch {
	case fault != "":
		return 0, fault
	case math.Abs(v) > math.MaxInt32:
		return 0, fmt.Sprintf("is %v: must be a whole number, at most 2147483647", n)
	case v != math.Trunc(v):
		return 0, fmt.Sprintf("is %v: must be a whole number, such as 10", n)
	default:
		return int(v), ""
	}
}

func writeWhole(v int) node { return node{kind: kindNumber, text: strconv.Itoa(v)} }

func readDuration(n node) (time.Duration, string) {
	v, err := time.ParseDuration(n.text)
	if n.kind != kindText || err != nil || numeral.MatchString(n.text) {
		return 0, fmt.Sprintf(`is %v: write a duration with a unit, such as "500ms" or "1s"`, n)
	}
	return v, ""
}

func writeDuration(v time.Duration) node {
	s := v.String()
	for _, idle := range []string{"m0s", "h0m"} { // 1h0m0s says no more than 1h
		if strings.HasSuffix(s, idle) {
			s = s[:len(s)-2]
		}
	}
	return node{kind: kindText, text: s}
}

// unquoted advises to remove the quotes of a text that would be of the kind
// without them.
func unquoted(n node, kind nodeKind) string {
	if n.kind == kindText && plainKind(n.text) == kind {
		return "; remove the quotes"
	}
	return ""
}
