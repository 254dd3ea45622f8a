package connection

import (
	"fmt"

	"github.com/spf13/pflag"
)

// level is how much a setting counts: one of a higher level replaces another.
type level int

const (
	unset level = iota
	byDefault
	byFile
	byEnvironment
	byFlag
)

// value is what an option has been set to.
type value struct {
	text  string
	level level
	from  string // as the user knows it, such as "PENSTOCK_USER"
}

// values is what the options have been set to, by their names.
type values map[string]value

// gather finds each option where it counts most.
func gather(flags *pflag.FlagSet, getenv func(string) string, config file) values {
	all := make(values)
	for _, o := range options() {
		flag := flags.Lookup(o.name)
		switch text, inFile := config.values[o.name]; {
		case flag != nil && flag.Changed:
			all[o.name] = value{flag.Value.String(), byFlag, "--" + o.name}
		case getenv(o.variable()) != "":
			all[o.name] = value{getenv(o.variable()), byEnvironment, o.variable()}
		case inFile:
			all[o.name] = value{text, byFile, fmt.Sprintf("%q in %s", o.name, config.path)}
		case o.preset != "":
			all[o.name] = value{o.preset, byDefault, "the default"}
		}
	}
	return all
}

// either returns that of two options, of which only one can count, that was set
// at the higher level.
func (v values) either(a, b string) (name string, chosen value, err error) {
	va, vb := v[a], v[b]
	switch {
	case va.level > vb.level:
		return a, va, nil
	case vb.level > va.level:
		return b, vb, nil
	case va.level == unset:
		return "", value{}, nil
	default:
		return "", value{}, fmt.Errorf("both %s and %s are set: keep one", va.from, vb.from)
	}
}
