package convert

import (
	"bytes"
	"strings"
)

// isLua says whether a block has Lua in it, as those of OpenResty have.
func isLua(words []string) bool { return strings.HasSuffix(words[0], "_by_lua_block") }

// skipLua skips the rest of a block of Lua, behind its first bracket. It says whether the block ends.
func (t *nginxTokens) skipLua() bool {
	for depth := 1; t.at < len(t.data); {
		switch rest := t.data[t.at:]; {
		case bytes.HasPrefix(rest, []byte("--")):
			if t.at += 2; !t.skipLongText() {
				t.skipPast("\n")
			}
		case rest[0] == '"' || rest[0] == '\'':
			t.skipLuaText(rest[0])
		case rest[0] == '[' && t.skipLongText():
		default:
			t.at++
			switch rest[0] {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					return true
				}
			}
		}
	}
	return false
}

// skipLongText skips a text in double brackets, such as [[…]] and [==[…]==], if there is one here.
func (t *nginxTokens) skipLongText() bool {
	rest := t.data[t.at:]
	if len(rest) == 0 || rest[0] != '[' {
		return false
	}
	level := len(rest[1:]) - len(bytes.TrimLeft(rest[1:], "="))
	if level+1 >= len(rest) || rest[level+1] != '[' {
		return false
	}
	t.skipPast("]" + strings.Repeat("=", level) + "]")
	return true
}

func (t *nginxTokens) skipLuaText(quote byte) {
	for t.at++; t.at < len(t.data) && t.data[t.at] != quote && t.data[t.at] != '\n'; t.at++ {
		if t.data[t.at] == '\\' {
			t.at++
		}
	}
	t.at++
}

// skipPast skips what comes up to a text, and the text.
func (t *nginxTokens) skipPast(text string) {
	if i := bytes.Index(t.data[min(t.at, len(t.data)):], []byte(text)); i >= 0 {
		t.at += i + len(text)
	} else {
		t.at = len(t.data)
	}
}
