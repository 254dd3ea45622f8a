package penstockprom

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
)

// ledger turns the counters of an engine's resources, which come and go, into
// those of a bounded number of accounts. It books what was counted since it last
// looked: whatever happened once is in one account for good, and no account ever
// goes down. Resources without an account of their own go into the one named
// [core.Overflow], as does what the engine itself has no room for.
type ledger struct {
	room    int // accounts for resources that no rule names
	buckets []time.Duration

	read     map[string]*reading // as of the last time, by the engine's names
	shown    map[string]bool     // which of them had an account of their own
	accounts map[string]*account // by label
}

func newLedger(room int, buckets []time.Duration) ledger {
	return ledger{room: room, buckets: buckets, accounts: make(map[string]*account)}
}

// book brings the accounts up to date.
func (l *ledger) book(resources []core.ResourceSnapshot) {
	now := make(map[string]*reading, len(resources))
	for i := range resources {
		now[resources[i].Name] = read(&resources[i], l.buckets)
	}
	shown := l.choose(now)
	for _, a := range l.accounts {
		a.reopen()
	}
	for name, r := range now {
		key := core.Overflow
		if shown[name] {
			key = label(name)
		}
		if l.accounts[key] == nil {
			l.accounts[key] = newAccount(len(l.buckets))
		}
		l.accounts[key].add(r, l.read[name])
	}
	maps.DeleteFunc(l.accounts, func(key string, a *account) bool { return !a.used && key != core.Overflow })
	l.read, l.shown = now, shown
}

// choose tells which resources have an account of their own: all that rules
// name and, as far as there is room, first those that had one, then newcomers.
func (l *ledger) choose(now map[string]*reading) map[string]bool {
	shown := make(map[string]bool)
	names := slices.Sorted(maps.Keys(now))
	for _, name := range names {
		if now[name].ruled && name != core.Overflow {
			shown[name] = true
		}
	}
	room := l.room
	for _, had := range []bool{true, false} {
		for _, name := range names {
			if room > 0 && !shown[name] && l.shown[name] == had && name != core.Overflow {
				shown[name] = true
				room--
			}
		}
	}
	return shown
}

// label makes a label's value of a name: UTF-8.
func label(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
