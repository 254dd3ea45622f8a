package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// AttrValue is the value of one attribute of a call: a string, an int64 or a bool.
type AttrValue struct {
	Name  string
	Value any
}

// AttrValues are the attributes of a call in the order of its stream. In JSON they
// are an object.
type AttrValues []AttrValue

// Get returns the value of an attribute, nil when the call does not have it.
func (a AttrValues) Get(name string) any {
	for _, attr := range a {
		if attr.Name == name {
			return attr.Value
		}
	}
	return nil
}

// MarshalJSON writes the attributes as an object.
func (a AttrValues) MarshalJSON() ([]byte, error) {
	object := make(map[string]any, len(a))
	for _, attr := range a {
		object[attr.Name] = attr.Value
	}
	return json.Marshal(object)
}

// UnmarshalJSON reads what MarshalJSON writes; the order is that of the names.
func (a *AttrValues) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return err
	}
	*a = nil
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if number, ok := value.(json.Number); ok {
			whole, err := number.Int64()
			if err != nil {
				return fmt.Errorf("simulate: the attribute %s: %w", name, err)
			}
			value = whole
		}
		*a = append(*a, AttrValue{name, value})
	}
	return nil
}

// first returns the value of the first attribute, nil when there is none.
func (a AttrValues) first() any {
	if len(a) == 0 {
		return nil
	}
	return a[0].Value
}
