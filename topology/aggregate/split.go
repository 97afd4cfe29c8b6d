package aggregate

import (
	"fmt"
	"strings"

	"millrace/topology/spelling"
)

// splitArgs cuts the arguments after the parenthesis at open, at the commas that stand in no string and no brackets.
// end is the offset after the closing parenthesis.
func splitArgs(text string, open int) (args []Arg, end int, err error) {
	var nested []byte // the brackets that have to close, outermost first
	from := open + 1
	for i := open; i < len(text); i++ {
		switch b := text[i]; b {
		case '"', '\'', '`':
			past := skipString(text, i)
			if past < 0 {
				hint := fmt.Sprintf("close it with %c", b)
				return nil, 0, &Error{Offset: i, Len: len(text) - i, Message: "the string does not end", Hint: hint}
			}
			i = past - 1
		case '(':
			nested = append(nested, ')')
		case '[':
			nested = append(nested, ']')
		case '{':
			nested = append(nested, '}')
		case ')', ']', '}':
			if want := nested[len(nested)-1]; b != want {
				return nil, 0, &Error{Offset: i, Len: 1, Message: fmt.Sprintf("%c where %c is due", b, want), Hint: "balance the brackets"}
			}
			nested = nested[:len(nested)-1]
			if len(nested) > 0 {
				break
			}
			if len(args) > 0 || strings.TrimSpace(text[from:i]) != "" {
				args, err = appendArg(args, text, from, i)
			}
			return args, i + 1, err
		case ',':
			if len(nested) > 1 {
				break
			}
			if args, err = appendArg(args, text, from, i); err != nil {
				return nil, 0, err
			}
			from = i + 1
		}
	}
	return nil, 0, &Error{
		Offset: open, Len: len(text) - open, Message: "the call does not end",
		Hint: fmt.Sprintf("close it with %c", nested[len(nested)-1]),
	}
}

func appendArg(args []Arg, text string, from, to int) ([]Arg, error) {
	trimmed := strings.TrimLeft(text[from:to], " \t\r\n")
	offset := to - len(trimmed)
	trimmed = strings.TrimRight(trimmed, " \t\r\n")
	if trimmed == "" {
		return nil, &Error{Offset: from, Len: max(1, to-from), Message: "an argument is empty", Hint: "take out the comma"}
	}
	return append(args, Arg{Text: trimmed, Offset: offset}), nil
}

// skipString returns the offset after the string that starts at i; -1 if it does not end. Only back-quoted strings
// know no escapes.
func skipString(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == quote:
			return i + 1
		case text[i] == '\\' && quote != '`':
			i++
		}
	}
	return -1
}

// nearest is the hint for an unknown name: what was probably meant, or else all there is.
func nearest(name string) string {
	names := make([]string, len(signatures))
	for i, sig := range signatures {
		names[i] = sig.name
	}
	if near := spelling.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "known are " + strings.Join(names, ", ")
}
