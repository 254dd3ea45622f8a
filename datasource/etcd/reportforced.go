package etcd

import (
	"cmp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// ForcedState is a state that an operator has forced in an instance, see core.Engine.Control, or a switch,
// see core.Engine.Switch: of one rule, of all rules of a kind, of a resource, or of all rules if it names
// none.
type ForcedState struct {
	Kind     rule.Kind `json:"kind,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Resource string    `json:"resource,omitempty"`

	State  string    `json:"state"`
	Switch bool      `json:"switch,omitempty"` // it is switched off or on
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself; left out if it does not
}

// Scope returns what it is for, in words.
func (f *ForcedState) Scope() string {
	return core.Scope{Kind: f.Kind, Rule: f.Rule, Resource: f.Resource}.String()
}

// size returns how many bytes the texts have.
func (f *ForcedState) size() int {
	return len(f.Kind) + len(f.Rule) + len(f.Resource) + len(f.State) + len(f.By) + len(f.Reason)
}

// withForced returns the report with what operators have forced.
func (r Report) withForced(status core.SourceStatus) Report {
	r.MoreForced = len(status.Switches) + len(status.Forced)
	text := 0
	add := func(of []core.Forced, isSwitch bool) {
		for _, f := range of {
			next := ForcedState{
				Kind: f.Kind, Rule: f.Rule, Resource: f.Resource, State: f.State, Switch: isSwitch, By: f.By, Reason: f.Reason, Until: f.Until,
			}
			if text += next.size(); text > maxNames || len(r.Forced) == maxForced {
				return
			}
			r.Forced = append(r.Forced, next)
			r.MoreForced--
		}
	}
	add(status.Switches, true)
	add(status.Forced, false)
	return r
}

// modulePath is the module of Penstock.
const modulePath = "github.com/penstock-go/penstock"

// builtWith returns the version of Penstock in this program, and the program's module with its version.
func builtWith() (version, program string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", ""
	}
	return versionsIn(info)
}

// versionsIn returns the version of Penstock in a program, and the program's module with its version.
func versionsIn(info *debug.BuildInfo) (version, program string) {
	program = strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
	if info.Main.Path == modulePath {
		version = info.Main.Version
	}
	for _, module := range info.Deps {
		if module.Path == modulePath {
			version = module.Version
			if module.Replace != nil {
				version = cmp.Or(module.Replace.Version, version)
			}
		}
	}
	return version, program
}
