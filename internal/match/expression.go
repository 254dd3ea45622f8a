package match

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// compileExpression compiles what follows the "~" of a pattern.
func compileExpression(expression string) (Pattern, *Error) {
	if expression == "" {
		return Pattern{}, &Error{Position: 1, Message: "no regular expression follows the ~: write ~.* to match every name"}
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err == nil {
		if size(tree) > maxSize {
			return Pattern{}, &Error{Message: fmt.Sprintf(
				"is a regular expression of more than %d parts, repeated ones counted as often: write a simpler one", maxSize)}
		}
		var compiled *regexp.Regexp
		if compiled, err = regexp.Compile(expression); err == nil {
			p := Pattern{rest: compiled}
			p.addWordsOf(tree)
			return p, nil
		}
	}
	fault := &Error{Message: err.Error() + ": correct the regular expression"}
	var mistake *syntax.Error
	if errors.As(err, &mistake) {
		fault.Message = "is no regular expression, " + mistake.Code.String() + ": " + remedy(mistake.Code)
		if at := strings.LastIndex(expression, mistake.Expr); at > 0 || mistake.Expr != expression {
			// The ~ is the first character.
			fault.Position = utf8.RuneCountInString(expression[:max(0, at)]) + 2
		}
	}
	return Pattern{}, fault
}

// maxSize is how many parts a regular expression may have. Matching takes time, and
// compiling memory, in proportion to them.
const maxSize = 2000

// size returns how many parts an expression has when its repetitions are written out.
func size(tree *syntax.Regexp) int {
	parts := 1
	if tree.Op == syntax.OpLiteral {
		parts = len(tree.Rune)
	}
	for _, sub := range tree.Sub {
		parts += size(sub)
	}
	if tree.Op == syntax.OpRepeat {
		parts *= max(1, tree.Min, tree.Max)
	}
	return min(parts, maxSize+1) // products of products do not overflow
}

// remedy returns what to do about a mistake in a regular expression.
func remedy(code syntax.ErrorCode) string {
	switch code {
	case syntax.ErrMissingBracket, syntax.ErrInvalidCharClass, syntax.ErrInvalidCharRange:
		return `correct the class, or write \[ for the character itself`
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen:
		return `balance the parentheses, or write \( or \) for the character itself`
	case syntax.ErrMissingRepeatArgument, syntax.ErrInvalidRepeatOp:
		return `put what is repeated before it, or a \ for the character itself; a glob has no ~ before it`
	case syntax.ErrInvalidRepeatSize, syntax.ErrLarge, syntax.ErrNestingDepth:
		return "write a simpler one"
	case syntax.ErrInvalidEscape, syntax.ErrTrailingBackslash:
		return `write \\ for the character \`
	}
	return "see https://pkg.go.dev/regexp/syntax"
}
