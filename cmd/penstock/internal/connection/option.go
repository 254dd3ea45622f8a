// Package connection reads the settings of the connection to etcd from flags, the
// environment and a file, and connects.
package connection

import (
	"strings"

	"github.com/spf13/pflag"
)

// option is a setting. Its flag is "--name", its environment variable
// "PENSTOCK_NAME", and its key in the file "name".
type option struct {
	name   string
	usage  string // of the flag; "" if there is no flag, which keeps secrets out of process lists
	preset string
}

func options() []option {
	return []option{
		{name: "app", usage: "the `name` of the application; its rules are below /penstock/NAME/"},
		{name: "prefix", usage: "the `prefix` of the documents in etcd, instead of --app"},
		{name: "endpoints", usage: "the `members` of the etcd cluster, separated by commas", preset: "127.0.0.1:2379"},
		{name: "user", usage: "the `user` to log in as: NAME, or NAME:PASSWORD"},
		{name: "password-file", usage: "a `file` with the password of the user"},
		{name: "password"},
		{name: "cacert", usage: "a `file` with CA certificates to verify the server with (PEM); turns TLS on"},
		{name: "cert", usage: "a `file` with the client certificate (PEM)"},
		{name: "key", usage: "a `file` with the key of the client certificate (PEM)"},
		{name: "dial-timeout", usage: "the `duration` to wait for the first answer of etcd", preset: "5s"},
	}
}

func (o option) variable() string {
	return "PENSTOCK_" + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
}

// configFlag is the flag for the settings file. It is not a setting itself.
const configFlag = "config"

// AddFlags adds the flags of the connection to etcd to a command, for [Find].
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

// Help explains the sources of settings, for the help of commands.
const Help = `The connection to etcd is set by flags, by environment variables with the same
names (PENSTOCK_ENDPOINTS for --endpoints, PENSTOCK_PASSWORD_FILE for
--password-file), or by a file with these names as keys (endpoints:
[etcd-1:2379, etcd-2:2379]). Flags override the environment, which overrides
the file. The password itself can be set only by PENSTOCK_PASSWORD or as
"password" in the file.`
