package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
)

// maxControlText is how many bytes of a text of the operator are sent: services keep less.
const maxControlText = 1 << 10

// read reads the arguments: a kind and a state, or what is switched and how.
func (c *controlRequest) read(args []string, kind string) error {
	c.state = args[len(args)-1]
	isSwitch := slices.Contains([]string{"rule", "kind", "resource", "engine"}, args[0])
	switch {
	case !isSwitch && len(args) > 2:
		return fmt.Errorf("unexpected argument %q", args[2])
	case !isSwitch && kind != "":
		return errors.New("--kind is for penstock control rule: the kind stands first else")
	case !isSwitch:
		c.kind = args[0]
		return nil
	case args[0] == "engine" && len(args) > 2:
		return fmt.Errorf("unexpected argument %q: engine is for all rules, and has no name", args[1])
	case args[0] != "engine" && (len(args) < 3 || args[1] == ""):
		return fmt.Errorf("which %s, and off, on or release? Name both: penstock control %s NAME off", args[0], args[0])
	case !slices.Contains([]string{"off", "on", release}, c.state):
		return fmt.Errorf("%q is no switch: there are off, on and release", c.state)
	case kind != "" && args[0] != "rule":
		return errors.New("--kind is for penstock control rule: leave it out")
	}
	c.scope, c.name, c.kind = args[0], "true", kind
	if c.scope != "engine" {
		c.name = args[1]
	}
	return nil
}

// switched says what a service has switched.
func (c controlRequest) switched() string {
	what := fmt.Sprintf("%s %q is", c.scope, c.name)
	if c.scope == "engine" {
		what = "the engine is"
	}
	switch {
	case c.state == release:
		return what + " released"
	case c.duration > 0:
		return fmt.Sprintf("%s switched %s for %v", what, c.state, c.duration)
	}
	return what + " switched " + c.state
}

// writeForced writes what is switched off or on, and which states are forced, and by whom.
func writeForced(text io.Writer, s inspect.Status) {
	if len(s.Switches)+len(s.Forced) == 0 {
		return
	}
	var rows bytes.Buffer
	table := newTable(&rows)
	fmt.Fprintln(table, "FORCED\tSTATE\tSINCE\tUNTIL\tBY\tREASON")
	for _, list := range [][]inspect.Forced{s.Switches, s.Forced} {
		for _, f := range list {
			until := "released"
			if !f.Until.IsZero() {
				until = dateTime(f.Until)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", wording.Cell(f.Scope()), wording.Cell(f.State), dateTime(f.Since), until,
				wording.Cell(f.By), wording.Cell(f.Reason))
		}
	}
	_ = table.Flush() // to a buffer
	fmt.Fprintf(text, "\n%s\n", strings.TrimRight(rows.String(), "\n"))
}
