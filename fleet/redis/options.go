package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"time"
)

// Options says where the servers are and who the client is. It is printed without passwords.
type Options struct {
	// Addresses are host:port pairs: of one server; of some nodes of a cluster, which one
	// finds the others; or, with SentinelMaster, of the sentinels.
	Addresses []string

	// App is the name of the service, the same in all its instances: limits of different
	// services do not touch. It begins all keys, {ps:<app>:…}.
	App string

	// User and Password of the server's access control list; without a User that of the
	// user default.
	User     string
	Password string

	// Database is the number of the database; 0 in a cluster.
	Database int

	// TLS has connections encrypted, those to sentinels too; nil: not.
	TLS *tls.Config

	// SentinelMaster is the name by which sentinels know the server.
	SentinelMaster string

	// SentinelUser and SentinelPassword are for the sentinels themselves.
	SentinelUser     string
	SentinelPassword string

	// DialTimeout is how long a connection may take, with TLS and authentication. It has
	// nothing to do with how long answers may take. Defaults to 1 s.
	DialTimeout time.Duration
}

// String returns the options without passwords.
func (o Options) String() string {
	return fmt.Sprintf("redis %s, app %s, user %q, database %d, sentinel master %q, TLS %t",
		strings.Join(o.Addresses, ","), o.App, o.User, o.Database, o.SentinelMaster, o.TLS != nil)
}

// GoString returns the options without passwords.
func (o Options) GoString() string { return o.String() }

// LogValue returns the options without passwords.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// appName is what an app may be called: it is part of keys and of patterns in access control
// lists.
var appName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,64}$`)

// validate returns all mistakes.
func (o *Options) validate() error {
	var all []error
	add := func(format string, args ...any) { all = append(all, fmt.Errorf("redis: "+format, args...)) }
	if len(o.Addresses) == 0 {
		add("Addresses is empty: give the host:port of the server, of some nodes of a cluster, or of the sentinels")
	}
	for _, address := range o.Addresses {
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			add("address %q is not of the form host:port, such as localhost:6379; TLS, users and databases have options of their own",
				o.scrub(address))
		}
	}
	if !appName.MatchString(o.App) {
		add("App is %q, it must be a name of 1 to 64 letters, digits and . _ / - which all instances of the service have", o.App)
	}
	if o.User != "" && o.Password == "" {
		add("User is %q but Password is empty: a user needs a password, or leave both empty", o.User)
	}
	if o.Database < 0 {
		add("Database is %d, it must be at least 0", o.Database)
	}
	if o.Database > 0 && o.SentinelMaster == "" && len(o.Addresses) > 1 {
		add("Database is %d, but a cluster has only database 0", o.Database)
	}
	if o.SentinelMaster == "" && (o.SentinelUser != "" || o.SentinelPassword != "") {
		add("SentinelUser and SentinelPassword need a SentinelMaster")
	}
	if o.DialTimeout < 0 {
		add("DialTimeout is %v, it must not be negative", o.DialTimeout)
	}
	return errors.Join(all...)
}

// scrub removes passwords from a text: a server that does not know a command may repeat its
// arguments, and an address may be a whole URL.
func (o *Options) scrub(text string) string {
	for _, secret := range []string{o.Password, o.SentinelPassword} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	if i := strings.LastIndexByte(text, '@'); i >= 0 && strings.Contains(text[:i], ":") && !strings.ContainsAny(text, " ") {
		text = "***" + text[i:]
	}
	return text
}
