package inspect

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// MaxArgs is how many arguments a [Call] may have.
const MaxArgs = 32

// Call is a call that is asked about. It is not made.
type Call struct {
	Resource string   `json:"resource"`
	Origin   string   `json:"origin,omitempty"` // "" when the caller does not say
	Args     []string `json:"args,omitempty"`   // no rule looks at them
}

// Validate tells what is wrong with the call: there has to be a resource, no text
// is longer than [rules.MaxNameLength] bytes, and there are at most [MaxArgs]
// arguments.
func (c Call) Validate() error {
	if c.Resource == "" {
		return errors.New("inspect: the resource is missing: name the one that is called")
	}
	if len(c.Args) > MaxArgs {
		return fmt.Errorf("inspect: there are %d arguments: the most is %d", len(c.Args), MaxArgs)
	}
	for _, text := range slices.Concat([]string{c.Resource, c.Origin}, c.Args) {
		if len(text) > rules.MaxNameLength {
			return fmt.Errorf("inspect: the resource, the origin or an argument is %d bytes long: the most is %d",
				len(text), rules.MaxNameLength)
		}
	}
	return nil
}

// Query returns the call as [Handler] takes it.
func (c Call) Query() url.Values {
	query := url.Values{"resource": {c.Resource}}
	if c.Origin != "" {
		query.Set("origin", c.Origin)
	}
	if len(c.Args) > 0 {
		query["arg"] = c.Args
	}
	return query
}

// parseCall reads the call that a request asks about.
func parseCall(query string) (Call, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return Call{}, fmt.Errorf("inspect: %w", err)
	}
	for name, given := range values {
		known := slices.Contains([]string{"resource", "origin", "arg"}, name)
		if !known || len(given) > 1 && name != "arg" {
			return Call{}, fmt.Errorf("inspect: %q is unknown or given twice: the parameters are resource, origin and arg", name)
		}
	}
	call := Call{Resource: values.Get("resource"), Origin: values.Get("origin"), Args: values["arg"]}
	return call, call.Validate()
}

// options returns what the call says beside the resource.
func (c Call) options() []core.Option {
	var options []core.Option
	if c.Origin != "" {
		options = append(options, core.Origin(c.Origin))
	}
	return options
}
