package ruleset

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Failure says that code of the program has panicked or ended its goroutine, instead of returning.
type Failure struct {
	Value any    // that it panicked with; nil if it ended its goroutine
	Stack []byte // of a panic
}

// Error tells the value.
func (f *Failure) Error() string {
	if f.Value == nil {
		return "has ended its goroutine"
	}
	return fmt.Sprintf("has panicked: %v", f.Value)
}

// Unwrap returns the value if it is an error.
func (f *Failure) Unwrap() error {
	err, _ := f.Value.(error)
	return err
}

// Guarded runs fn, which is or calls code of the program, in a goroutine of its own, so that whatever
// becomes of it the caller goes on. It returns a [*Failure] if fn has not returned.
func Guarded(fn func()) error {
	failure := new(Failure) // unless fn returns
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if value := recover(); value != nil {
				failure = &Failure{Value: value, Stack: debug.Stack()}
			}
		}()
		fn()
		failure = nil
	}()
	<-ended
	if failure == nil {
		return nil
	}
	return failure
}

// IsFailure says whether code of the program did not return.
func IsFailure(err error) bool {
	var failure *Failure
	return errors.As(err, &failure)
}
