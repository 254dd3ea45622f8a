package connection_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
)

// world is the flags, the environment and the file of a test.
type world struct {
	args   []string
	env    map[string]string
	config string // the file at the usual place, if not empty
}

// find finds the settings. The file is private.
func (w world) find(t *testing.T) (connection.Settings, error) {
	t.Helper()
	home := t.TempDir()
	if w.config != "" {
		write(t, filepath.Join(home, ".config", "penstock", "config.yaml"), w.config, 0o600)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	connection.AddFlags(flags)
	require.NoError(t, flags.Parse(w.args))
	return connection.Find(t.Context(), flags, func(name string) string {
		if name == "HOME" {
			return home
		}
		return w.env[name]
	})
}

func write(t *testing.T, path, data string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(data), mode))
	return path
}

func TestFlagsOverrideEnvironmentOverridesFile(t *testing.T) {
	config := "app: file\nendpoints: [file-1:1, file-2:2]\n"
	env := map[string]string{"PENSTOCK_APP": "env", "PENSTOCK_ENDPOINTS": "env:1"}
	for name, test := range map[string]struct {
		world     world
		prefix    string
		endpoints []string
	}{
		"file":        {world{config: config}, "/penstock/file/", []string{"file-1:1", "file-2:2"}},
		"environment": {world{config: config, env: env}, "/penstock/env/", []string{"env:1"}},
		"flags": {
			world{config: config, env: env, args: []string{"--app", "flag", "--endpoints", "flag:1, https://flag:2"}},
			"/penstock/flag/",
			[]string{"flag:1", "https://flag:2"},
		},
		"defaults":                     {world{args: []string{"--app=shop"}}, "/penstock/shop/", []string{"127.0.0.1:2379"}},
		"a prefix over an app":         {world{env: env, args: []string{"--prefix", "/rules/shop"}}, "/rules/shop/", []string{"env:1"}},
		"an app over a prefix":         {world{config: "prefix: /x/", args: []string{"--app", "shop"}}, "/penstock/shop/", []string{"127.0.0.1:2379"}},
		"endpoints of a file in a row": {world{config: "app: a\nendpoints: b:1,c:2"}, "/penstock/a/", []string{"b:1", "c:2"}},
		"an empty variable is none":    {world{config: config, env: map[string]string{"PENSTOCK_APP": ""}}, "/penstock/file/", []string{"file-1:1", "file-2:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := test.world.find(t)
			require.NoError(t, err)
			assert.Equal(t, test.prefix, s.Keys.Documents)
			assert.Equal(t, test.endpoints, s.Endpoints)
			assert.Empty(t, s.Warnings)
		})
	}
}

func TestSettingsFileCanBeNamed(t *testing.T) {
	named := write(t, filepath.Join(t.TempDir(), "x.yaml"), "app: named", 0o600)
	xdg := t.TempDir()
	write(t, filepath.Join(xdg, "penstock", "config.yaml"), "app: xdg", 0o600)
	for prefix, w := range map[string]world{
		"/penstock/named/": {args: []string{"--config", named}, env: map[string]string{"PENSTOCK_CONFIG": "/nowhere", "XDG_CONFIG_HOME": xdg}},
		"/penstock/xdg/":   {env: map[string]string{"XDG_CONFIG_HOME": xdg}, config: "app: home"},
	} {
		s, err := w.find(t)
		require.NoError(t, err)
		assert.Equal(t, prefix, s.Keys.Documents)
	}
	_, err := world{args: []string{"--config", "/nowhere/x.yaml"}}.find(t)
	require.ErrorContains(t, err, "/nowhere/x.yaml", "a file that was named must be there")
}

func TestErrorsOfSettingsNameTheirSource(t *testing.T) {
	for name, test := range map[string]struct {
		world world
		want  string
	}{
		"no app":                    {world{}, "which rules are meant? Name the application with --app NAME or PENSTOCK_APP"},
		"app and prefix":            {world{args: []string{"--app=a", "--prefix=/b"}}, "both --app and --prefix are set: keep one"},
		"an app that is a path":     {world{args: []string{"--app=/shop/"}}, `--app is "/shop/": must be a name`},
		"a prefix of slashes":       {world{env: map[string]string{"PENSTOCK_PREFIX": "//"}}, "PENSTOCK_PREFIX: etcd: the prefix is empty"},
		"an endpoint without port":  {world{args: []string{"--app=a", "--endpoints=etcd"}}, `--endpoints: the endpoint "etcd" must be HOST:PORT`},
		"an empty endpoint":         {world{args: []string{"--app=a", "--endpoints=a:1,"}}, `--endpoints: the endpoint "" must be`},
		"an unknown scheme":         {world{args: []string{"--app=a", "--endpoints=ftp://a:1"}}, `"ftp://a:1" must be HOST:PORT`},
		"a timeout without a unit":  {world{args: []string{"--app=a"}, env: map[string]string{"PENSTOCK_DIAL_TIMEOUT": "5"}}, `PENSTOCK_DIAL_TIMEOUT is "5": write a duration with a unit`},
		"a timeout of nothing":      {world{args: []string{"--app=a", "--dial-timeout=0s"}}, `--dial-timeout is "0s"`},
		"a certificate alone":       {world{args: []string{"--app=a", "--cert=x"}}, "set both of --cert and --key"},
		"a user without a password": {world{config: "app: a\nuser: alice"}, `the user "alice" ("user" in `},
		"a password without a user": {world{args: []string{"--app=a"}, env: map[string]string{"PENSTOCK_PASSWORD": "x"}}, "PENSTOCK_PASSWORD sets a password without a user"},
		"an unknown setting":        {world{config: "app: a\n\nendpoint: b:1\n"}, `config.yaml:3: unknown setting "endpoint": there are app, prefix, endpoints,`},
		"a setting twice":           {world{config: "app: a\napp: b\n"}, `config.yaml:2:`},
		"a list where text belongs": {world{config: "app: [a]\n"}, `config.yaml:1: "app" must be a text`},
		"an empty setting":          {world{config: "app:\n"}, `config.yaml:1: "app" must be a text`},
		"a list for a file":         {world{config: "- app\n"}, `config.yaml:1: must be a mapping of settings`},
		"two documents":             {world{config: "app: a\n---\napp: b\n"}, `config.yaml:2: a second document begins here`},
		"no YAML":                   {world{config: "app: a\nuser: {\n"}, `config.yaml:3: cannot be read as YAML`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.world.find(t)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestErrorsNeverContainPasswords(t *testing.T) {
	const secret = "hunter2"
	file := write(t, filepath.Join(t.TempDir(), "password"), secret, 0o600)
	for name, w := range map[string]world{
		"twice":                {args: []string{"--user=alice:" + secret, "--password-file=" + file}},
		"twice in the file":    {config: "user: alice:" + secret + "\npassword: " + secret},
		"in an endpoint":       {args: []string{"--endpoints=http://alice:" + secret + "@etcd:1"}},
		"without a scheme":     {args: []string{"--endpoints=alice:" + secret + "@etcd:1"}},
		"without a user":       {env: map[string]string{"PENSTOCK_PASSWORD": secret}},
		"not a text":           {config: "password: [" + secret + "]"},
		"no YAML":              {config: "password: \"" + secret + "\nuser: 'x"},
		"as an unknown key":    {config: "pasword: " + secret},
		"beside other faults":  {args: []string{"--user=alice:" + secret, "--dial-timeout=x", "--endpoints=y"}},
		"with a broken anchor": {config: "password: *" + secret},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.find(t)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), secret)
		})
	}
}

func TestReadableFilesWithPasswordsCauseAWarning(t *testing.T) {
	open := func(data string, mode os.FileMode) string {
		path := write(t, filepath.Join(t.TempDir(), "x.yaml"), data, mode)
		require.NoError(t, os.Chmod(path, mode)) // whatever the umask
		return path
	}
	for name, test := range map[string]struct {
		args []string
		warn bool
	}{
		"a password":                {[]string{"--config", open("user: a\npassword: p", 0o644)}, true},
		"a user with a password":    {[]string{"--config", open("user: a:p", 0o640)}, true},
		"a private password":        {[]string{"--config", open("user: a\npassword: p", 0o600)}, false},
		"no password":               {[]string{"--config", open("endpoints: a:1", 0o644)}, false},
		"a file of a password":      {[]string{"--user=a", "--password-file", open("p\n", 0o644)}, true},
		"a private one":             {[]string{"--user=a", "--password-file", open("p\n", 0o600)}, false},
		"a password not used":       {[]string{"--user=a:b", "--config", open("password: p", 0o644)}, true},
		"a private one not used":    {[]string{"--user=a:b", "--config", open("password: p", 0o600)}, false},
		"a user's one not used":     {[]string{"--user=a:b", "--config", open("user: b:p", 0o604)}, true},
		"a private user's not used": {[]string{"--user=a:b", "--config", open("user: b:p", 0o600)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := world{args: append(test.args, "--app=a")}.find(t)
			require.NoError(t, err)
			assert.Equal(t, test.warn, len(s.Warnings) == 1, "%v", s.Warnings)
		})
	}
}
