package rule

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/penstock-go/penstock/internal/document"
)

// Strings is a list of texts in a rule. It never changes, and two lists are equal (==)
// when they have the same texts in the same order. The zero value is empty.
type Strings struct{ encoded string }

// StringsOf returns a list of texts.
func StringsOf(items ...string) Strings {
	var b strings.Builder
	for _, item := range items {
		encode(&b, item)
	}
	return Strings{b.String()}
}

// Len returns how many texts the list has.
func (l Strings) Len() int {
	count := 0
	for range l.All() {
		count++
	}
	return count
}

// All yields the texts in order.
func (l Strings) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := l.encoded; rest != ""; {
			var item string
			if item, rest = decode(rest); !yield(item) {
				return
			}
		}
	}
}

// NumberMap is a mapping in a rule from texts, whole numbers or booleans to numbers, in the order of the document.
// It never changes, and two are equal (==) when they have the same entries in the same
// order. The zero value is empty.
type NumberMap struct{ encoded string }

// NumberMapOf returns a mapping with entries.
func NumberMapOf(entries ...NumberEntry) NumberMap {
	var b strings.Builder
	for _, e := range entries {
		b.WriteByte(byte(typeOf(e.Key)))
		encode(&b, e.Key.String())
		encode(&b, strconv.FormatFloat(e.Value, 'g', -1, 64))
	}
	return NumberMap{b.String()}
}

// NumberEntry is an entry of a [NumberMap]: the key is a [String], an [Int] or a [Bool].
type NumberEntry struct {
	Key   Attribute
	Value float64
}

// typeOf returns how a document writes an attribute; Null if that is nothing.
func typeOf(a Attribute) document.Type {
	_, isNumber := a.Number()
	_, isBoolean := a.Boolean()
	switch {
	case !a.IsSet():
		return document.Null
	case isNumber:
		return document.Number
	case isBoolean:
		return document.Boolean
	}
	return document.Text
}

// attributeOf returns what a document writes as a key of a mapping, and what is wrong with it.
func attributeOf(of document.Type, text string) (a Attribute, fault string) {
	switch of {
	case document.Text:
		return String(text), ""
	case document.Boolean:
		return Bool(strings.EqualFold(text, "true")), ""
	case document.Number:
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Attribute{}, fmt.Sprintf("has a key %s that is no whole number: no value equals it; put a text in quotes", text)
		}
		return Int(number), ""
	}
	return Attribute{}, fmt.Sprintf("has a key that is %v: must be text, a number, true or false", document.Value{Type: of, Text: text})
}

// Len returns how many entries the mapping has.
func (m NumberMap) Len() int {
	count := 0
	for range m.All() {
		count++
	}
	return count
}

// All yields the entries in order.
func (m NumberMap) All() iter.Seq[NumberEntry] {
	return func(yield func(NumberEntry) bool) {
		for rest := m.encoded; rest != ""; {
			var e NumberEntry
			var key, number string
			of := document.Type(rest[0])
			key, rest = decode(rest[1:])
			number, rest = decode(rest)
			e.Key, _ = attributeOf(of, key) // NumberMapOf wrote them
			e.Value, _ = strconv.ParseFloat(number, 64)
			if !yield(e) {
				return
			}
		}
	}
}

// encode writes a text so that decode finds its end.
func encode(b *strings.Builder, text string) {
	b.WriteString(strconv.Itoa(len(text)))
	b.WriteByte(':')
	b.WriteString(text)
}

// decode returns the first text, and what comes after it.
func decode(encoded string) (text, rest string) {
	digits, rest, _ := strings.Cut(encoded, ":")
	length, _ := strconv.Atoi(digits) // encode wrote it
	return rest[:length], rest[length:]
}

// stringsField is a field with a list of texts. A document may write a single text
// without brackets.
func stringsField[R any](path string, at func(*R) *Strings) Field[R] {
	f := newField(path, at, readStrings, stringsValue)
	f.check = func(rule *R) string {
		for item := range at(rule).All() {
			if fault := CheckName(item); fault != "" {
				return "has an entry that " + fault
			}
		}
		return ""
	}
	return f
}

// numberMapField is a field with a mapping from texts, numbers or booleans to numbers.
func numberMapField[R any](path string, at func(*R) *NumberMap) Field[R] {
	f := newField(path, at, readNumberMap, numberMapValue)
	f.check = func(rule *R) string {
		for e := range at(rule).All() {
			if fault := CheckName(e.Key.String()); fault != "" {
				return "has a key that " + fault
			}
		}
		return ""
	}
	return f
}

func readStrings(v document.Value) (Strings, string) {
	if v.Type != document.List {
		text, fault := document.ReadText(v)
		return StringsOf(text), fault
	}
	items := make([]string, len(v.Items))
	for i, item := range v.Items {
		text, fault := document.ReadText(item)
		if fault != "" {
			return Strings{}, fmt.Sprintf("has an entry %d that %s", i+1, fault)
		}
		items[i] = text
	}
	return StringsOf(items...), ""
}

func stringsValue(l Strings) document.Value {
	v := document.Value{Type: document.List}
	for item := range l.All() {
		v.Items = append(v.Items, document.TextValue(item))
	}
	return v
}

func readNumberMap(v document.Value) (NumberMap, string) {
	if v.Type != document.Mapping {
		return NumberMap{}, fmt.Sprintf("is %v: must be a mapping to numbers, such as {vip: 1000}", v)
	}
	entries := make([]NumberEntry, len(v.Entries))
	type written struct {
		of   document.Type
		text string
	}
	given := make(map[written]bool, len(v.Entries))
	for i, e := range v.Entries {
		key, fault := attributeOf(e.KeyType, e.Key)
		if fault != "" {
			return NumberMap{}, fault
		}
		name := written{e.KeyType, key.String()}
		number, fault := document.ReadNumber(e.Value)
		switch shown := (document.Value{Type: name.of, Text: name.text}); {
		case given[name]:
			return NumberMap{}, fmt.Sprintf("has the key %v twice: remove one", shown)
		case fault != "":
			return NumberMap{}, fmt.Sprintf("has an entry %v that %s", shown, fault)
		}
		given[name] = true
		entries[i] = NumberEntry{Key: key, Value: number}
	}
	return NumberMapOf(entries...), ""
}

func numberMapValue(m NumberMap) document.Value {
	v := document.Value{Type: document.Mapping}
	for e := range m.All() {
		v.Entries = append(v.Entries, document.Entry{Key: e.Key.String(), KeyType: typeOf(e.Key), Value: document.NumberValue(e.Value)})
	}
	return v
}
