package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/penstock-go/penstock/rule"
)

// engineMetrics are the words after which metrics of the engine are named, as in
// penstock_source_connected. A kind whose name begins with one could have the same ones.
func engineMetrics() []string {
	return []string{
		"blocked", "documents", "failed", "fleet", "in", "list", "passed", "resources", "response", "rule", "rules", "signal", "source", "switched", "wait",
	}
}

// nameFault returns what is wrong with the names of the last of several kinds, given
// those before; "" if nothing is. Names of kinds and gauges are parts of names of
// metrics, of which each must have one meaning.
func nameFault(kinds []rule.Definition) string {
	last, before := kinds[len(kinds)-1], kinds[:len(kinds)-1]
	name := string(last.Kind())
	if !isCamelCase(name) {
		return fmt.Sprintf("the kind of rules %s: its name must be in camel case, letters and digits, as in tenantQuota", rule.Quote(name))
	}
	if last.Kind() == kindServe {
		return fmt.Sprintf("the kind of rules %q: documents have a field of that name: give it another name", name)
	}
	if first := firstWord(name); slices.Contains(engineMetrics(), first) {
		return fmt.Sprintf("the kind of rules %q: metrics of the engine begin with %q: give it another name", name, first)
	}
	owners := make(map[string]string) // of metrics
	for _, kind := range before {
		if kind.Kind() == last.Kind() {
			return fmt.Sprintf("there are two kinds of rules %q", name)
		}
		for _, metric := range metricNames(kind) {
			owners[metric] = string(kind.Kind())
		}
	}
	for _, metric := range metricNames(last) {
		owner, taken := owners[metric]
		switch {
		case taken && owner == name:
			return fmt.Sprintf("the kind of rules %q has two metrics %s: give the gauge another name", name, metric)
		case taken:
			return fmt.Sprintf("the kinds of rules %q and %q both have a metric %s: give a gauge or a kind another name",
				owner, name, metric)
		case !isSnakeCase(metric):
			return fmt.Sprintf("the kind of rules %q: the metric %q is not in snake case: give the gauge another name", name, metric)
		}
		owners[metric] = name
	}
	for _, gauge := range last.Gauges() {
		if !isLabel(gauge.Label) {
			return fmt.Sprintf("the kind of rules %q: the label %q of the gauge %q must be in snake case, and neither resource nor rule",
				name, gauge.Label, gauge.Name)
		}
	}
	return ""
}

// isLabel says whether metrics of a kind can have a label, beside those that all have;
// "" is none.
func isLabel(name string) bool {
	return name == "" || isSnakeCase(name) && isLower(rune(name[0])) && name != "resource" && name != "rule"
}

func isCamelCase(name string) bool {
	return name != "" && isLower(rune(name[0])) && !strings.ContainsFunc(name, func(r rune) bool {
		return !isLower(r) && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	})
}

func isSnakeCase(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return !isLower(r) && (r < '0' || r > '9') && r != '_' })
}

func isLower(r rune) bool { return 'a' <= r && r <= 'z' }

// firstWord returns the first word of a name in camel case.
func firstWord(name string) string {
	if end := strings.IndexFunc(name, unicode.IsUpper); end > 0 {
		return name[:end]
	}
	return name
}
