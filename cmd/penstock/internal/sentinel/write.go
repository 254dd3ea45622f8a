package sentinel

import (
	"bytes"
	"fmt"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rules"
)

// YAML returns the rules as one document, headed by a comment that tells where
// they come from and what of it is missing. It fails if the document would be
// longer than [rules.MaxDocumentSize].
func (c Conversion) YAML() ([]byte, error) {
	body, err := c.Rules.YAML()
	if err != nil {
		return nil, err
	}
	var document bytes.Buffer
	c.head(&document)
	document.Write(body)
	if _, err := rules.Parse("the converted document", document.Bytes()); err != nil {
		return nil, err
	}
	return document.Bytes(), nil
}

func (c Conversion) head(to *bytes.Buffer) {
	fmt.Fprintln(to, "# Flow rules of Sentinel, converted by penstock convert from")
	for _, name := range c.files {
		fmt.Fprintf(to, "#   %s\n", wording.Printable(name))
	}
	const most = 100
	told := 0
	for _, f := range c.Findings {
		if f.Kind != LeftOut {
			continue
		}
		switch told++; {
		case told == 1:
			fmt.Fprintln(to, "# What could not be carried over is missing:")
			fallthrough
		case told <= most:
			fmt.Fprintf(to, "#   %s\n", f)
		}
	}
	if told > most {
		fmt.Fprintf(to, "#   and %d more\n", told-most)
	}
	fmt.Fprintln(to)
}
