package list

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// entryKind is what the entries of a list are that are not in quotes.
type entryKind uint8

const (
	noEntries entryKind = iota
	addrEntries
	textEntries
)

// addEntry adds an entry of a text, without white space and comments around it.
func (b *Builder) addEntry(entry []byte) error {
	entry, until, err := cutEnd(entry)
	if err != nil {
		return err
	}
	if len(entry) > 0 && entry[0] == '"' {
		text, err := strconv.Unquote(string(entry))
		if err != nil {
			return fmt.Errorf("%s has quotes that do not match or a backslash that means nothing: write quotes as in Go, \\\" for one in the text", quote(string(entry)))
		}
		return b.addText([]byte(text), until)
	}
	if addr, length, is4, ok := parsePrefix(entry); ok {
		if err := b.setKind(addrEntries, entry); err != nil {
			return err
		}
		return b.addPrefix(addr, length, is4, until)
	}
	if err := checkText(string(entry), b.kind == addrEntries); err != nil {
		return err
	}
	if err := b.setKind(textEntries, entry); err != nil {
		return err
	}
	return b.addText(entry, until)
}

// setKind notes what the list has, or says that it has something else.
func (b *Builder) setKind(kind entryKind, entry []byte) error {
	switch b.kind {
	case kind:
		return nil
	case noEntries:
		b.kind, b.first = kind, string(entry[:min(len(entry), 4*maxQuoted)])
		return nil
	}
	return fmt.Errorf("%s is an address, but %s, an entry before it, is not: a list has addresses or texts; put it in quotes if it is a text",
		quote(string(entry)), quote(b.first))
}

// checkText returns what is wrong with an entry that is no sound address or prefix: it
// was meant to be one, or is no text that a call could have.
func checkText(entry string, amongAddrs bool) error {
	if entry == "" {
		return errors.New("the entry is empty: write \"\" if the empty text is meant")
	}
	if !utf8.ValidString(entry) {
		return fmt.Errorf("%s is not UTF-8: write the text in UTF-8", quote(entry))
	}
	if i := strings.IndexFunc(entry, isInvisible); i >= 0 {
		r, _ := utf8.DecodeRuneInString(entry[i:])
		return fmt.Errorf("%s has a character %U, which cannot be seen: remove it", quote(entry), r)
	}
	if strings.Contains(entry, "*") {
		return fmt.Errorf("%s has a *: lists have no patterns; write a prefix such as 10.0.0.0/8, put the pattern in the rule, or put the text in quotes", quote(entry))
	}
	if err := checkAddr(entry); err != nil {
		return fmt.Errorf("%w; put it in quotes if it is a text", err)
	}
	if amongAddrs {
		return fmt.Errorf("%s is no address and no prefix, as the entries before it are: a list has addresses or texts; put it in quotes if it is a text", quote(entry))
	}
	return nil
}

// CheckAddr returns what is wrong with an entry that should be an address or a prefix;
// nil if it is one.
func CheckAddr(entry string) error {
	if _, _, _, ok := parsePrefix(entry); ok {
		return nil
	}
	if err := checkAddr(entry); err != nil {
		return err
	}
	return fmt.Errorf("%s is no address and no prefix: write one such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32", quote(entry))
}

// checkAddr returns what is wrong with an entry that was meant to be an address or a
// prefix, but is no sound one.
func checkAddr(entry string) error {
	prefix, prefixErr := netip.ParsePrefix(entry)
	addr, addrErr := netip.ParseAddr(entry)
	host, _, _ := strings.Cut(entry, "/")
	switch {
	case prefixErr == nil && prefix.Addr().Is4In6() && prefix.Bits() < 96:
		return fmt.Errorf("%s is an IPv4 address written as IPv6, of which a prefix has at least 96 bits: write it as IPv4", quote(entry))
	case prefixErr == nil:
		return fmt.Errorf("%s has bits beyond its length: write %v if the network is meant, %v if the address is",
			quote(entry), prefix.Masked(), prefix.Addr())
	case addrErr == nil:
		bare := addr.WithZone("").String()
		if _, length, isPrefix := strings.Cut(addr.Zone(), "/"); isPrefix {
			bare += "/" + length
		}
		return fmt.Errorf("%s has a zone, which means something on one machine only: write %s", quote(entry), bare)
	case !looksLikeAddr(host):
		if among, ok := addrAmong(entry); ok {
			return fmt.Errorf("%s has the address %s and more: an entry is an address or a prefix alone", quote(entry), quote(among))
		}
		return nil
	case strings.Contains(entry, "/"):
		return fmt.Errorf("%s is no prefix: %s", quote(entry), reason(prefixErr))
	}
	return fmt.Errorf("%s is no address: %s", quote(entry), reason(addrErr))
}

// reason returns what netip says of an address, without the address.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "): "); i >= 0 {
		text = text[i+len("): "):]
	}
	if i := strings.Index(text, " (at "); i >= 0 {
		text = text[:i]
	}
	return text
}

// looksLikeAddr says whether a text can hardly be anything but an address, sound or not:
// it has three dots among digits, or :: among hexadecimal digits.
func looksLikeAddr(text string) bool {
	text, _, _ = strings.Cut(text, "%")
	dots, others := 0, 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '.':
			dots++
		case c == ':', c == '-', hexValue(c) < 16:
			if c < '0' || c > '9' {
				others++
			}
		default:
			return false
		}
	}
	return dots == 3 && others == 0 || strings.Contains(text, "::") || dots == 6 && strings.Contains(text, "-")
}

// addrAmong returns an address or a prefix that a text has among other things, as in 192.0.2.1:80, [2001:db8::1],
// 192.0.2.1,192.0.2.2 or "deny 192.0.2.1;".
func addrAmong(text string) (addr string, ok bool) {
	if strings.Count(text, ".") < 3 && strings.Count(text, ":") < 2 {
		return "", false
	}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t,;|[](){}<>'`", r) }) {
		if at, err := netip.ParseAddrPort(part); err == nil {
			return at.Addr().String(), true
		}
		if _, _, _, ok := parsePrefix([]byte(part)); ok {
			return part, true
		}
	}
	return "", false
}

// isInvisible tells characters that can hide in a text.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// withoutComment returns a line without its comment and the white space around.
func withoutComment(line []byte) []byte {
	line = bytes.TrimSpace(line)
	if len(line) > 0 && line[0] == '"' {
		quoted, err := strconv.QuotedPrefix(string(line))
		if err != nil {
			return line // the mistake is reported
		}
		rest := line[len(quoted):]
		behind := withoutComment(rest)
		switch {
		case len(rest) > 0 && rest[0] == '#':
			return line // the mistake is reported
		case len(behind) == 0:
			return line[:len(quoted)]
		}
		return line[:cap(line)-cap(behind)+len(behind)] // behind is a part of line
	}
	for from := 0; ; {
		i := bytes.IndexByte(line[from:], '#')
		if i < 0 {
			return line
		}
		i += from
		if i == 0 || line[i-1] == ' ' || line[i-1] == '\t' {
			return bytes.TrimSpace(line[:i])
		}
		from = i + 1
	}
}

const maxQuoted = 60 // characters of an entry in a message

// quote returns an entry in quotes, cut to what a message can bear.
func quote(text string) string {
	if runes := []rune(text); len(runes) > maxQuoted {
		text = string(runes[:maxQuoted]) + "…"
	}
	return strconv.Quote(text)
}
