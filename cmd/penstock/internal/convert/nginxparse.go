package convert

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// nginxDirective is a directive of nginx and where it stands.
type nginxDirective struct {
	offset int
	words  []string
	around []*nginxBlock // from the outermost
}

// nginxBlock is a block, such as a server or a location.
type nginxBlock struct {
	words  []string
	server string          // the first name of a server
	dryRun map[string]bool // whether limit_req and limit_conn only count, where it is said
}

func (d nginxDirective) name() string { return d.words[0] }

// resource returns a name for what the directive is for: the path of a location, the name of
// a server, or "nginx".
func (d nginxDirective) resource() string {
	for _, b := range slices.Backward(d.around) {
		switch b.words[0] {
		case "location":
			return cmp.Or(strings.Join(b.words[1:], " "), "location")
		case "server":
			return cmp.Or(b.server, "server")
		}
	}
	return "nginx"
}

// isDryRun says whether the directive only counts: what the innermost block says.
func (d nginxDirective) isDryRun() bool {
	for _, b := range slices.Backward(d.around) {
		if on, said := b.dryRun[d.name()]; said {
			return on
		}
	}
	return false
}

// source returns where a rule with keys comes from.
func (d nginxDirective) source(keys []string) source {
	s := source{offset: d.offset, resource: d.resource(), notes: []string{noteNginxResource, noteNginxStatus}}
	if slices.Contains(keys, "ip") {
		s.notes = append(s.notes, noteNginxAddress)
	}
	return s
}

// parseNginx returns the directives in a configuration of nginx, without those that begin
// blocks, or the offset of the first error and the error.
func parseNginx(data []byte) (all []nginxDirective, offset int, err error) {
	t := nginxTokens{data: data}
	blocks := []*nginxBlock{{words: []string{""}, dryRun: map[string]bool{}}}
	var words []string
	begin := 0
	for {
		at, token, quoted := t.next()
		switch {
		case at < 0 && len(words) == 0 && len(blocks) == 1:
			return all, 0, nil
		case at < 0:
			return nil, len(data), errors.New("it ends within a block or a directive")
		case token == "{" && !quoted:
			if len(words) == 0 {
				return nil, at, errors.New("a block has no name")
			}
			if isLua(words) {
				if words = nil; !t.skipLua() {
					return nil, at, errors.New("a block of Lua does not end")
				}
				continue
			}
			blocks = append(blocks, &nginxBlock{words: words, dryRun: map[string]bool{}})
			words = nil
		case token == "}" && !quoted:
			if len(words) > 0 || len(blocks) == 1 {
				return nil, at, errors.New("a bracket that closes nothing, or a directive without a semicolon before it")
			}
			blocks = blocks[:len(blocks)-1]
		case token == ";" && !quoted:
			if len(words) > 0 {
				all = append(all, nginxDirectiveOf(begin, words, blocks))
			}
			words = nil
		default:
			if len(words) == 0 {
				begin = at
			}
			words = append(words, token)
		}
	}
}

// nginxDirectiveOf returns a directive. Those that are of a block are noted there.
func nginxDirectiveOf(offset int, words []string, blocks []*nginxBlock) nginxDirective {
	last := blocks[len(blocks)-1]
	switch {
	case words[0] == "server_name" && len(words) > 1:
		last.server = words[1]
	case (words[0] == "limit_req_dry_run" || words[0] == "limit_conn_dry_run") && len(words) > 1:
		last.dryRun[strings.TrimSuffix(words[0], "_dry_run")] = words[1] == "on"
	}
	return nginxDirective{offset: offset, words: words, around: slices.Clone(blocks)}
}

// nginxTokens reads the words, brackets and semicolons of a configuration of nginx.
type nginxTokens struct {
	data []byte
	at   int
}

// next returns the next token; at is negative at the end.
func (t *nginxTokens) next() (at int, token string, quoted bool) {
	for t.at < len(t.data) {
		switch c := t.data[t.at]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			t.at++
		case c == '#':
			for t.at < len(t.data) && t.data[t.at] != '\n' {
				t.at++
			}
		case strings.IndexByte("{};", c) >= 0:
			t.at++
			return t.at - 1, string(c), false
		case c == '"' || c == '\'':
			return t.quoted(c)
		default:
			return t.word()
		}
	}
	return -1, "", false
}

// quoted reads a word in quotes.
func (t *nginxTokens) quoted(quote byte) (at int, token string, quoted bool) {
	begin := t.at
	var text []byte
	for t.at++; t.at < len(t.data) && t.data[t.at] != quote; t.at++ {
		if t.data[t.at] == '\\' && t.at+1 < len(t.data) && strings.IndexByte(`"'\`, t.data[t.at+1]) >= 0 {
			t.at++
		}
		text = append(text, t.data[t.at])
	}
	t.at++
	return begin, string(text), true
}

// word reads a word without quotes, in which ${…} may be.
func (t *nginxTokens) word() (at int, token string, quoted bool) {
	begin := t.at
	for t.at < len(t.data) && strings.IndexByte(" \t\r\n;", t.data[t.at]) < 0 {
		switch c := t.data[t.at]; {
		case c == '{' && t.at > begin && t.data[t.at-1] == '$':
			for t.at < len(t.data) && t.data[t.at] != '}' {
				t.at++
			}
		case c == '{' || c == '}':
			return begin, string(t.data[begin:t.at]), false
		}
		t.at++
	}
	return begin, string(t.data[begin:min(t.at, len(t.data))]), false
}
