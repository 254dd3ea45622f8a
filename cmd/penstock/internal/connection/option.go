// Package connection finds out how to reach etcd, from flags, the environment
// and a file, and reaches it.
package connection

import (
	"strings"

	"github.com/spf13/pflag"
)

// option is one thing that can be set. Its flag is "--name", its variable
// "PENSTOCK_NAME", its key in the file "name".
type option struct {
	name   string
	usage  string // of the flag; empty when there is none, to keep secrets out of lists of processes
	preset string
}

func options() []option {
	return []option{
		{name: "app", usage: "the `name` of the application whose rules are meant: those below /penstock/NAME/"},
		{name: "prefix", usage: "the `prefix` of the documents in etcd, instead of --app"},
		{name: "endpoints", usage: "the `members` of the etcd cluster, separated by commas", preset: "127.0.0.1:2379"},
		{name: "user", usage: "the `user` to log in as: NAME, or NAME:PASSWORD"},
		{name: "password-file", usage: "a `file` that holds the password of the user"},
		{name: "password"},
		{name: "cacert", usage: "a `file` with the certificates that the server's is checked with (PEM); asks for TLS"},
		{name: "cert", usage: "a `file` with the certificate to show to the server (PEM)"},
		{name: "key", usage: "a `file` with the key of that certificate (PEM)"},
		{name: "dial-timeout", usage: "the `duration` that etcd may take to answer at first", preset: "5s"},
	}
}

func (o option) variable() string {
	return "PENSTOCK_" + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
}

// configFlag names the file with settings. It is not a setting itself.
const configFlag = "config"

// AddFlags gives a command the flags that say how to reach etcd, for [Find] to
// read.
func AddFlags(flags *pflag.FlagSet) {
	for _, o := range options() {
		if o.usage != "" {
			flags.String(o.name, "", o.help())
		}
	}
	flags.String(configFlag, "", "a `file` with settings (default $XDG_CONFIG_HOME/penstock/config.yaml)")
}

func (o option) help() string {
	if o.preset == "" {
		return o.usage
	}
	return o.usage + " (default " + o.preset + ")"
}

// Help tells where settings come from, for the help of commands.
const Help = `How to reach etcd is set by flags, by variables of the environment named after
them (PENSTOCK_ENDPOINTS for --endpoints, PENSTOCK_PASSWORD_FILE for
--password-file), or by a file of such names (endpoints: [etcd-1:2379,
etcd-2:2379]); the first of them counts. The password alone can be set by
PENSTOCK_PASSWORD or as "password" in the file.`
