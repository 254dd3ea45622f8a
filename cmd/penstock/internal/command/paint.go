package command

import "github.com/penstock-go/penstock/rules"

// painter colours text for a terminal, or returns it unchanged.
type painter struct{ colours bool }

// painter returns a painter that uses colours only on a terminal, and not if NO_COLOR
// is set: see no-color.org.
func (env Env) painter() painter {
	return painter{env.OutIsTerminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"}
}

const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (p painter) paint(colour, text string) string {
	if !p.colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// sign returns the sign of a change before the text, in its colour.
func (p painter) sign(change rules.Change, text string) string {
	switch change {
	case rules.Added:
		return p.paint(green, "+ "+text)
	case rules.Removed:
		return p.paint(red, "- "+text)
	default:
		return p.paint(yellow, "~ "+text)
	}
}
