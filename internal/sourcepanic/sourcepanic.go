// Package sourcepanic has the error of a source that has panicked.
package sourcepanic

import "fmt"

// Error says that a source of documents has panicked. It is started again.
type Error struct {
	Source string
	Value  any    // that it panicked with
	Stack  []byte // of its goroutine
}

// Error tells the value.
func (e *Error) Error() string { return fmt.Sprintf("core: source %q panicked: %v", e.Source, e.Value) }

// Unwrap returns the value if it is an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
