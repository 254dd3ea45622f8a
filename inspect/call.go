package inspect

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// maxAttributes is how many attributes a [Call] may have.
const maxAttributes = 32

// Call is a call that is asked about. It is not made.
type Call struct {
	Resource string `json:"resource"`
	Origin   string `json:"origin,omitempty"` // "" when the caller does not say

	// Attributes are values by key, written as [rule.ParseAttribute] reads them: 7 is a
	// number, "7" in quotes is a text.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Validate returns what is wrong with the call: there has to be a resource, no text
// is longer than [rule.MaxNameLength] bytes, and there are at most 32
// attributes.
func (c Call) Validate() error {
	if c.Resource == "" {
		return errors.New("inspect: the resource is missing: name the one that is called")
	}
	if len(c.Attributes) > maxAttributes {
		return fmt.Errorf("inspect: there are %d attributes: the most is %d", len(c.Attributes), maxAttributes)
	}
	texts := []string{c.Resource, c.Origin}
	for key, value := range c.Attributes {
		texts = append(texts, key, value)
	}
	for _, text := range texts {
		if len(text) > rule.MaxNameLength {
			return fmt.Errorf("inspect: the resource, the origin or an attribute is %d bytes long: the most is %d",
				len(text), rule.MaxNameLength)
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
	for _, key := range slices.Sorted(maps.Keys(c.Attributes)) {
		query.Add("attr", key+"="+c.Attributes[key])
	}
	return query
}

// parseCall reads the call that a request asks about.
func parseCall(query string) (Call, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return Call{}, fmt.Errorf("inspect: %w", err)
	}
	attributes := values["attr"] // of which there may be several
	delete(values, "attr")
	if err := checkParameters(values, "resource", "origin", "attr"); err != nil {
		return Call{}, err
	}
	call := Call{Resource: values.Get("resource"), Origin: values.Get("origin")}
	if call.Attributes, err = ParseAttributes(attributes); err != nil {
		return Call{}, err
	}
	return call, call.Validate()
}

// checkParameters returns an error if a parameter is not a known one, or is given twice.
func checkParameters(values url.Values, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) || len(values[name]) > 1 {
			last := len(known) - 1
			if last == 0 {
				return fmt.Errorf("inspect: %s is unknown or given twice: the parameter is %s", rule.Quote(name), known[0])
			}
			return fmt.Errorf("inspect: %s is unknown or given twice: the parameters are %s and %s",
				rule.Quote(name), strings.Join(known[:last], ", "), known[last])
		}
	}
	return nil
}

// ParseAttributes reads attributes of the form key=value; nil if there are none.
func ParseAttributes(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	attributes := make(map[string]string, len(texts))
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("inspect: the attribute %s is not of the form key=value", rule.Quote(text))
		}
		if _, twice := attributes[key]; twice {
			return nil, fmt.Errorf("inspect: the attribute %s is given twice", rule.Quote(key))
		}
		attributes[key] = value
	}
	return attributes, nil
}

// options returns what the call says beside the resource.
func (c Call) options() []core.Option {
	var options []core.Option
	if c.Origin != "" {
		options = append(options, core.Origin(c.Origin))
	}
	if len(c.Attributes) > 0 {
		options = append(options, core.Attributes(writtenAttribute, &c.Attributes))
	}
	return options
}

// writtenAttribute reads an attribute of a [Call].
func writtenAttribute(attributes *map[string]string, key string) rule.Attribute {
	written, ok := (*attributes)[key]
	if !ok {
		return rule.Attribute{}
	}
	return rule.ParseAttribute(written)
}
