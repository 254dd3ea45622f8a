package convert

import (
	"bytes"
	"fmt"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rules"
)

// YAML returns the rules as one document. A comment at its top says which files they
// come from and what was left out. YAML fails if the document would be longer than
// [rules.MaxDocumentSize].
func (c Conversion) YAML() ([]byte, error) {
	body, err := c.Rules.YAML()
	if err != nil {
		return nil, err
	}
	var document bytes.Buffer
	c.writeHead(&document)
	document.Write(body)
	if _, err := rules.Parse("the converted document", document.Bytes()); err != nil {
		return nil, err
	}
	return document.Bytes(), nil
}

func (c Conversion) writeHead(to *bytes.Buffer) {
	of := " of Sentinel"
	if c.others {
		of = ""
	}
	fmt.Fprintf(to, "# Rules%s, converted by penstock convert from\n", of)
	for _, name := range c.files {
		fmt.Fprintf(to, "#   %s\n", wording.Printable(name))
	}
	const most = 100
	count := 0
	for _, f := range c.Findings {
		if f.Kind != LeftOut {
			continue
		}
		switch count++; {
		case count == 1:
			fmt.Fprintln(to, "# These could not be converted and are missing:")
			fallthrough
		case count <= most:
			fmt.Fprintf(to, "#   %s\n", f)
		}
	}
	if count > most {
		fmt.Fprintf(to, "#   and %d more\n", count-most)
	}
	fmt.Fprintln(to)
}
