package penstockredis

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

const (
	prefix = "redis:"

	// maxNames and maxNameLength bound what is kept of commands that a program makes up.
	maxNames      = 1000
	maxNameLength = 64
)

// command is what is known of the commands of one name.
type command struct {
	name     string // in upper case
	resource string
	exempt   bool // never guarded
	blocks   blocking
}

// blocking says when a command waits at the server.
type blocking uint8

const (
	never      blocking = iota
	withOption          // BLOCK
	always
)

// commands are the commands of a hook by their names, a thousand at most.
type commands struct {
	known atomic.Pointer[map[string]*command] // by the name in lower case; never written
	other *command
	mu    sync.Mutex // held to replace known
}

func newCommands() *commands {
	c := &commands{other: &command{name: "OTHER", resource: prefix + "OTHER"}}
	known := map[string]*command{}
	c.known.Store(&known)
	return c
}

// of returns the command of a name. It takes no lock once the name is known.
func (c *commands) of(cmd redis.Cmder) *command {
	name := cmd.Name()
	if known, ok := (*c.known.Load())[name]; ok {
		return known
	}
	return c.add(name)
}

func (c *commands) add(name string) *command {
	if name == "" || len(name) > maxNameLength {
		return c.other
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	present := *c.known.Load()
	if known, ok := present[name]; ok {
		return known
	}
	if len(present) >= maxNames {
		return c.other
	}
	added := newCommand(strings.Clone(name))
	known := maps.Clone(present)
	known[strings.Clone(name)] = added
	c.known.Store(&known)
	return added
}

func newCommand(name string) *command {
	upper := strings.ToUpper(name)
	return &command{name: upper, resource: prefix + upper, exempt: isExempt(upper), blocks: blockingOf(upper)}
}

// isExempt says whether commands of a name are never guarded: those that set connections up,
// which a client sends by itself within the call of another command, and those that free
// what a connection holds.
func isExempt(name string) bool {
	switch name {
	case "HELLO", "AUTH", "SELECT", "CLIENT", "READONLY", "READWRITE", "ASKING", "RESET", "QUIT",
		"UNWATCH", "DISCARD":
		return true
	}
	return false
}

func blockingOf(name string) blocking {
	switch name {
	case "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP",
		"WAIT", "WAITAOF", "MONITOR":
		return always
	case "XREAD", "XREADGROUP":
		return withOption
	}
	return never
}

// IsBlocking reports whether a command may wait at the server for something to happen: BLPOP,
// BRPOP, BRPOPLPUSH, BLMOVE, BLMPOP, BZPOPMIN, BZPOPMAX, BZMPOP, WAIT, WAITAOF, MONITOR, and
// XREAD and XREADGROUP with BLOCK.
func IsBlocking(cmd redis.Cmder) bool {
	return blockingOf(strings.ToUpper(cmd.Name())).applies(cmd)
}

func (b blocking) applies(cmd redis.Cmder) bool {
	return b == always || b == withOption && hasBlockOption(cmd)
}

// hasBlockOption says whether a command that reads streams waits for entries.
func hasBlockOption(cmd redis.Cmder) bool {
	for _, arg := range cmd.Args() {
		switch word, _ := arg.(string); {
		case strings.EqualFold(word, "block"):
			return true
		case strings.EqualFold(word, "streams"): // the names of streams follow
			return false
		}
	}
	return false
}
