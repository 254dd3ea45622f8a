package main

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/bench/internal/report"
)

// growth returns a table for each thing whose number grows, such as rules: a row for
// each number, a column for each variant and number of cores.
func (r *results) growth() (tables []*report.Table) {
	keys := r.of(growth)
	for _, what := range distinct(keys, func(k key) string { return cut(k.subject) }) {
		table := &report.Table{Title: "### By " + strings.ReplaceAll(what, "-", " "), Head: []string{"number"}}
		columns := distinct(keys, func(k key) key { return key{variant: k.variant, cores: k.cores} })
		for _, column := range columns {
			table.Head = append(table.Head, fmt.Sprintf("%s, -cpu %d, ns", column.variant, column.cores))
		}
		for _, subject := range distinct(keys, subjectOf) {
			if cut(subject) != what {
				continue
			}
			row := []string{strings.TrimPrefix(subject, what+"=")}
			for _, column := range columns {
				time, measured := r.median(key{growth, subject, column.variant, column.cores}, "sec/op")
				if measured {
					row = append(row, nanoseconds(time))
				} else {
					row = append(row, "–")
				}
			}
			table.Add(row...)
		}
		tables = append(tables, table)
	}
	return tables
}

// cut returns "rules" for a subject such as "rules=10".
func cut(subject string) string {
	what, _, _ := strings.Cut(subject, "=")
	return what
}
