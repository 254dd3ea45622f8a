package file

import (
	"cmp"
	"errors"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// restless is the fault of a document that never is the same twice.
const restless = "file: keeps changing while it is read: write it under another name and rename it"

// compare notes which files differ from the look before and from what was
// delivered. It returns whether there is no such file, but for those that never
// come to rest, and none has just gone.
func (f *follower) compare(present map[string]*found) (atRest bool) {
	atRest = true
	for name, file := range present {
		before := f.previous[name]
		switch {
		case f.has(name, file.version), before != nil && file.same(before):
			file.unrest = 0
		case before != nil:
			file.unrest = before.unrest + 1
		default:
			file.unrest = 1
		}
		atRest = atRest && (file.unrest == 0 || file.unrest > maxHeld)
	}
	for name := range f.delivered {
		atRest = atRest && (present[name] != nil || f.previous[name] == nil)
	}
	return atRest
}

// has tells whether the sink has this version of the document.
func (f *follower) has(name string, v version) bool {
	delivered, ok := f.delivered[name]
	return ok && delivered == v
}

// deliver hands on what came to rest and is news.
func (f *follower) deliver(present map[string]*found) {
	change := core.Change{Complete: f.delivered == nil}
	if change.Complete {
		f.delivered = make(map[string]version)
	}
	for name, file := range present {
		v := file.version
		if file.unrest > maxHeld {
			v = version{fault: restless}
		} else if file.unrest > 0 {
			continue
		}
		if !f.has(name, v) {
			change.Documents = append(change.Documents, document(name, v, file.data))
			f.delivered[name] = v
		}
	}
	for name := range f.delivered {
		if present[name] == nil && f.previous[name] == nil {
			change.Removed = append(change.Removed, name)
			delete(f.delivered, name)
		}
	}
	slices.SortFunc(change.Documents, func(a, b core.Document) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(change.Removed)
	if change.Complete || len(change.Documents) > 0 || len(change.Removed) > 0 || !f.connected {
		f.sink.Apply(change)
	}
	f.connected = true
}

func document(name string, v version, data []byte) core.Document {
	if v.fault != "" {
		return core.Document{Name: name, Err: errors.New(v.fault)}
	}
	return core.Document{Name: name, Data: data}
}
