package console

import "fmt"

// Identity is the name of a person or a program, as the history of documents shows it.
type Identity string

// Role is what somebody may do. Each role may do what those before it may.
type Role int

// The roles.
const (
	Nobody   Role = iota // may not look
	Viewer               // may look
	Operator             // may switch rules off and on, and confirm what is held back
	Editor               // may change documents
)

// String returns the role as files of tokens write it, such as "viewer".
func (r Role) String() string {
	switch r {
	case Nobody:
		return "nobody"
	case Viewer:
		return "viewer"
	case Operator:
		return "operator"
	case Editor:
		return "editor"
	default:
		return fmt.Sprintf("Role(%d)", int(r))
	}
}

// ParseRole returns the role that a text names.
func ParseRole(text string) (Role, error) {
	for _, r := range []Role{Nobody, Viewer, Operator, Editor} {
		if text == r.String() {
			return r, nil
		}
	}
	return Nobody, fmt.Errorf("console: %q is no role: it is viewer, operator or editor", text)
}
