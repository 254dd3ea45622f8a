package file

import (
	"cmp"
	"errors"
	"slices"

	"github.com/penstock-go/penstock/core"
)

// unstableFault is the error of a document that changes at every poll.
const unstableFault = "file: keeps changing while it is read: write it under another name and rename it"

// compare counts for each file in how many polls it was unstable: different both
// from the poll before and from what was delivered. It returns whether all files are
// stable and none has just disappeared. It ignores files that were unstable for too
// long.
func (f *follower) compare(present map[string]*fileState) (stable bool) {
	stable = true
	for name, file := range present {
		before := f.previous[name]
		switch {
		case f.hasDelivered(name, file.version), before != nil && file.same(before):
			file.unstablePolls = 0
		case before != nil:
			file.unstablePolls = before.unstablePolls + 1
		default:
			file.unstablePolls = 1
		}
		stable = stable && (file.unstablePolls == 0 || file.unstablePolls > maxUnstablePolls)
	}
	for name := range f.delivered {
		stable = stable && (present[name] != nil || f.previous[name] == nil)
	}
	return stable
}

// hasDelivered reports whether this version of the document was delivered.
func (f *follower) hasDelivered(name string, v version) bool {
	delivered, ok := f.delivered[name]
	return ok && delivered == v
}

// deliver delivers the stable files that differ from what was delivered before, and
// an error for each file that was unstable for too long.
func (f *follower) deliver(present map[string]*fileState) {
	change := core.Change{Complete: f.delivered == nil}
	if change.Complete {
		f.delivered = make(map[string]version)
	}
	for name, file := range present {
		v := file.version
		if file.unstablePolls > maxUnstablePolls {
			v = version{fault: unstableFault}
		} else if file.unstablePolls > 0 {
			continue
		}
		if !f.hasDelivered(name, v) {
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
