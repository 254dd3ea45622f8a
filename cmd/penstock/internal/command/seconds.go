package command

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/cmd/penstock/internal/scenario"
)

// seconds is the value of a flag for a time, in seconds or with a unit, as in load
// files.
type seconds time.Duration

// String, Set and Type implement pflag.Value.
func (s *seconds) String() string {
	if *s == 0 {
		return "" // the help of the flag states the default
	}
	return time.Duration(*s).String()
}

func (s *seconds) Set(text string) error {
	d, ok := scenario.ParseDuration(text)
	if !ok {
		return errors.New("must be in seconds, such as 20, or have a unit, such as 500ms")
	}
	*s = seconds(d)
	return nil
}

func (s *seconds) Type() string { return "duration" }
