package connection

import (
	"fmt"

	"github.com/spf13/pflag"
)

// level is the precedence of a setting: a higher level overrides a lower one.
type level int

const (
	unset level = iota
	byDefault
	byFile
	byEnvironment
	byFlag
)

// value is the value of an option.
type value struct {
	text  string
	level level
	from  string // source, for messages, such as "PENSTOCK_USER"
}

// values are the values of the options, by name.
type values map[string]value

// collect returns the value of each option. Flags override the environment, which
// overrides the file.
func collect(flags *pflag.FlagSet, getenv func(string) string, config file) values {
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

// either returns the one of two exclusive options that was set at the higher level.
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
