package report

import (
	"fmt"
	"os"
	"strings"
)

// Publish prints a section and, if a document is named, puts it there between the
// markers of that section:
//
//	<!-- bench:NAME -->
//	…
//	<!-- /bench:NAME -->
//
// The section is where the figures come from, see [Environment], and its tables.
func Publish(document, section, environment string, tables ...*Table) error {
	parts := []string{environment + "\n"}
	for _, table := range tables {
		parts = append(parts, table.String())
	}
	text := strings.Join(parts, "\n")
	fmt.Print(text)
	if document == "" {
		return nil
	}
	old, err := os.ReadFile(document) //nolint:gosec // the user names the document
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	updated, err := replace(string(old), section, text)
	if err != nil {
		return fmt.Errorf("report: %s: %w", document, err)
	}
	if err := os.WriteFile(document, []byte(updated), 0o644); err != nil { //nolint:gosec // documentation is for all to read
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Check fails if [Publish] would, because of the document: for measurements that take long. It
// succeeds without a document.
func Check(document, section string) error {
	if document == "" {
		return nil
	}
	text, err := os.ReadFile(document) //nolint:gosec // the user names the document
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if _, err := replace(string(text), section, ""); err != nil {
		return fmt.Errorf("report: %s: %w", document, err)
	}
	return nil
}

// replace puts text between the markers of a section.
func replace(document, section, text string) (string, error) {
	begin, end := "<!-- bench:"+section+" -->\n", "<!-- /bench:"+section+" -->"
	before, rest, found := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("it needs a line %q and below it a line %q", strings.TrimSpace(begin), end)
	}
	return before + begin + "\n" + text + "\n" + end + after, nil
}
