package adaptive

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
)

// EvidenceOf says in plain words what showed a shortage.
func EvidenceOf(s limit.Shortage) string { return evidenceOf(s) }

// NamesOf names so many resources.
func NamesOf(n int) string {
	var classes []*class
	for i := range n {
		classes = append(classes, &class{name: strings.Repeat("x", 80) + fmt.Sprint(i)})
	}
	return namesOf(classes)
}
