package match

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// literals are texts that every name has which matches a pattern.
type literals struct {
	prefix string   // every name that matches begins with it
	words  []string // and has each of these somewhere
}

// texts returns all of them.
func (l *literals) texts() []string {
	if l.prefix == "" {
		return l.words
	}
	return append([]string{l.prefix}, l.words...)
}

// addWord adds a text that a name must have somewhere. It leaves a replacement character
// out, which stands for every byte that is not UTF-8.
func (l *literals) addWord(word string) {
	for text := range strings.SplitSeq(word, string(utf8.RuneError)) {
		if text != "" {
			l.words = append(l.words, text)
		}
	}
}

// addWordsOf adds the texts that everything has which matches an expression.
func (l *literals) addWordsOf(tree *syntax.Regexp) {
	switch tree.Op {
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 {
			l.addWord(string(tree.Rune))
		}
	case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
		for _, sub := range tree.Sub {
			l.addWordsOf(sub)
		}
	case syntax.OpRepeat:
		if tree.Min > 0 {
			l.addWordsOf(tree.Sub[0])
		}
	}
}
