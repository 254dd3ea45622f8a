// Command table reads what benchmarks of this module printed and makes tables of
// it: medians, beside Penstock and beside rate.Allow, and how they compare with the
// targets of the project. Adapters are compared by the lowest figures.
//
//	go run ./cmd/table [-docs FILE] RESULTS…
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/penstock-go/penstock/bench/internal/report"
)

func main() {
	document := flag.String("docs", "", "put the tables into this document, between their markers")
	flag.Parse()
	if err := run(flag.Args(), *document); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run(files []string, document string) error {
	results, err := read(files)
	if err != nil {
		return err
	}
	if tables := append(results.scenarios(), results.targets()...); len(tables) > 0 {
		if err := report.Publish(document, "speed", results.environment, tables...); err != nil {
			return err
		}
	}
	if tables := results.adapters(); len(tables) > 0 {
		if err := report.Publish(document, "adapters", results.environment, tables...); err != nil {
			return err
		}
	}
	if tables := results.growth(); len(tables) > 0 {
		return report.Publish(document, "growth", results.environment, tables...)
	}
	return nil
}
