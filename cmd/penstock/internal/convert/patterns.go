package convert

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
)

// patternFindings reports the patterns that match resources with rules of their own.
// In Sentinel for Java such a pattern does not apply to them, here it does. Sentinel
// keeps flow and isolation rules together and the other kinds apart.
func (b *batch) patternFindings() []Finding {
	flows := append(sourcesOf(b.flow), sourcesOf(b.isolation)...)
	return slices.Concat(overlaps(flows), overlaps(sourcesOf(b.breaker)), overlaps(sourcesOf(b.hotParam)), overlaps(sourcesOf(b.access)))
}

func overlaps(sources []source) []Finding {
	var findings []Finding
	for _, s := range sources {
		if s.pattern == "" {
			continue
		}
		pattern, err := regexp.Compile(s.pattern)
		if err != nil {
			continue // the rule is not valid
		}
		i := slices.IndexFunc(sources, func(other source) bool {
			return other.pattern == "" && pattern.MatchString(other.resource)
		})
		if i >= 0 {
			findings = append(findings, Finding{
				Kind: Differs, offset: s.offset, Resource: s.resource,
				Message: fmt.Sprintf("in Sentinel a pattern does not apply to resources with rules of their own; here it also applies to %s",
					wording.Quote(sources[i].resource)),
			})
		}
	}
	return findings
}
