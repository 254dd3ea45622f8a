package penstockredis

import (
	"fmt"
	"strconv"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/rule"
)

// attributeOf reads an attribute of a call.
func attributeOf(s *subject, key string) rule.Attribute {
	switch key {
	case "command":
		return rule.String(s.name)
	case "key":
		if s.cmd != nil {
			return argument(s.cmd.Args(), firstKey(s.name, s.cmd.Args()))
		}
	}
	return rule.Attribute{}
}

// argument returns an argument of a command; nothing if it has none there or i is 0.
func argument(args []any, i int) rule.Attribute {
	if i == 0 || i >= len(args) {
		return rule.Attribute{}
	}
	return attribute.Text(textOf(args[i]))
}

func textOf(arg any) string {
	switch a := arg.(type) {
	case string:
		return a
	case []byte:
		return string(a)
	case int:
		return strconv.Itoa(a)
	}
	return fmt.Sprint(arg)
}

// firstKey returns where the first key of a command is among its words, 0 if it has none or
// the command is not known to have one.
func firstKey(name string, args []any) int {
	switch name {
	case "PING", "ECHO", "INFO", "TIME", "DBSIZE", "FLUSHALL", "FLUSHDB", "KEYS", "SCAN", "RANDOMKEY",
		"PUBLISH", "SPUBLISH", "PUBSUB", "SCRIPT", "FUNCTION", "CONFIG", "CLUSTER", "COMMAND", "DEBUG", "ACL",
		"SLOWLOG", "LATENCY", "MODULE", "LASTSAVE", "SAVE", "BGSAVE", "BGREWRITEAOF", "SHUTDOWN", "ROLE",
		"REPLICAOF", "SLAVEOF", "SWAPDB", "WAIT", "WAITAOF", "MONITOR", "MULTI", "EXEC", "FAILOVER", "OTHER":
		return 0
	case "OBJECT", "MEMORY", "XINFO", "XGROUP", "BITOP":
		return 2
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO", "BLMPOP", "BZMPOP":
		return afterCount(args, 2)
	case "LMPOP", "ZMPOP", "SINTERCARD", "ZINTERCARD", "ZUNION", "ZINTER", "ZDIFF":
		return afterCount(args, 1)
	case "MIGRATE":
		return 3
	case "XREAD", "XREADGROUP":
		for i := 1; i < len(args); i++ {
			if word, _ := args[i].(string); word == "streams" || word == "STREAMS" {
				return i + 1
			}
		}
		return 0
	}
	return 1
}

// afterCount returns where the first key is of a command that says how many keys it has, 0
// if it has none.
func afterCount(args []any, count int) int {
	if count >= len(args) || textOf(args[count]) == "0" {
		return 0
	}
	return count + 1
}
