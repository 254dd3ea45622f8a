package core

import (
	"log/slog"

	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/rule"
)

// warnOfOverflow tells that a name found no space among so many. Most often that means that
// clients choose names.
func (e *Engine) warnOfOverflow(name string, most int) {
	e.events.add(Event{At: e.clock.Now(), Type: eventOverflow, Resource: name})
	attributes := []any{slog.Int("maxResources", most), slog.String("resource", lines.Cut(name))}
	var byValue []string
	for _, kind := range e.Kinds() {
		if kind.Phase() == rule.PhaseValue {
			byValue = append(byValue, string(kind.Kind()))
		}
	}
	if len(byValue) > 0 {
		attributes = append(attributes, slog.Any("kindsByValue", byValue))
	}
	e.log.Warn("penstock: there are more resource names than MaxResources: those beyond share one set of statistics"+
		" and, under each rule with a pattern, one limit; if clients choose names, such as users or addresses, give calls one name"+
		" and say who calls by an attribute, which rules can limit by value; if not, raise MaxResources", attributes...)
}
