package sentinel

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// yielding tells of patterns that match resources with rules of their own. Those
// have nothing to do with the pattern in Sentinel for Java.
func yielding(converted []carried) []Finding {
	var findings []Finding
	for _, rule := range converted {
		if !rule.yields {
			continue
		}
		pattern, err := regexp.Compile(strings.TrimPrefix(rule.Match, "~"))
		if err != nil {
			continue // such a rule is not carried over
		}
		for _, other := range converted {
			if other.Resource != "" && pattern.MatchString(other.Resource) {
				findings = append(findings, Finding{
					Kind: Differs, offset: rule.offset, Resource: rule.Match,
					Message: fmt.Sprintf("in Sentinel a resource with rules of its own is not held to a pattern; here %s is held to both",
						wording.Quote(other.Resource)),
				})
				break
			}
		}
	}
	return findings
}
