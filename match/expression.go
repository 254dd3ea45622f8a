package match

import (
	"errors"
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
	compiled, err := regexp.Compile(expression)
	if err == nil {
		return Pattern{rest: compiled}, nil
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

// remedy says what to do about a mistake in a regular expression.
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
