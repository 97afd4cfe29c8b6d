package aggregate

import (
	"fmt"
	"strconv"
	"strings"
)

// Call is one aggregate as it is written, as in collect_set(value.referrer, 20).
type Call struct {
	Name string
	// Args are the expressions, for the caller to compile. Limit and precision are not among them.
	Args      []Arg
	Limit     int // collect_list and collect_set: the most values that are kept
	Precision int // approx_distinct: 2^Precision registers
	Len       int // bytes of the text, for findings about the whole call
}

// Arg is the text of an expression and its place in the call, in bytes.
type Arg struct {
	Text   string
	Offset int
}

// Error is what is wrong with a call, and where in its text.
type Error struct {
	Item          string // name of the result field; empty from Parse, which does not know it
	Offset, Len   int    // bytes
	Message, Hint string
}

func (e *Error) Error() string {
	text := e.Message
	if e.Item != "" {
		text = "aggregate " + e.Item + ": " + text
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// signature says what a function's parentheses hold: expressions first, then perhaps one literal number.
type signature struct {
	name            string
	least, most     int // expressions
	option          string
	lowest, highest int // of the option
	standard        int // the option when it is not written; 0: it must be
	example         string
}

const (
	// maxLimit keeps a collection within what one record and a linear search can bear.
	maxLimit = 10_000
	// The registers of approx_distinct: a state of 16 B to 64 KiB, an error of 26% to 0.4%; 4 KiB and 1.6% by default.
	minPrecision, maxPrecision, defaultPrecision = 4, 16, 12
)

// signatures is a read-only table.
var signatures = []signature{
	{name: "count", most: 1, example: "count() or count(value.user_id)"},
	{name: "sum", least: 1, most: 1, example: "sum(value.cost)"},
	{name: "min", least: 1, most: 1, example: "min(value.cost)"},
	{name: "max", least: 1, most: 1, example: "max(value.cost)"},
	{name: "avg", least: 1, most: 1, example: "avg(value.cost)"},
	{name: "first", least: 1, most: 1, example: "first(value.url)"},
	{name: "last", least: 1, most: 1, example: "last(value.url)"},
	{name: "collect_list", least: 1, most: 1, option: "limit", lowest: 1, highest: maxLimit, example: "collect_list(value.url, 20)"},
	{name: "collect_set", least: 1, most: 1, option: "limit", lowest: 1, highest: maxLimit, example: "collect_set(value.url, 20)"},
	{
		name: "approx_distinct", least: 1, most: 1, option: "precision", lowest: minPrecision, highest: maxPrecision,
		standard: defaultPrecision, example: "approx_distinct(value.user_id) or approx_distinct(value.user_id, 14)",
	},
	{name: "fold", least: 2, most: 2, example: "fold(0, acc + value.n)"},
}

// Parse reads one call. It checks the name, the number of arguments and the literal ones; the expressions stay text.
// The error is an *Error.
func Parse(text string) (Call, error) {
	name, open := head(text)
	if name == "" {
		return Call{}, &Error{
			Len: len(text), Message: fmt.Sprintf("%q is not an aggregate", text),
			Hint: "write a call, as in count() or sum(value.cost)",
		}
	}
	sig, known := lookup(name)
	at := strings.Index(text, name)
	if !known {
		return Call{}, &Error{Offset: at, Len: len(name), Message: "unknown aggregate " + name, Hint: nearest(name)}
	}
	if open < 0 {
		return Call{}, &Error{Offset: at, Len: len(name), Message: name + " is not called", Hint: "write " + sig.example}
	}
	args, end, err := splitArgs(text, open)
	if err != nil {
		return Call{}, err
	}
	if rest := strings.TrimSpace(text[end:]); rest != "" {
		return Call{}, &Error{
			Offset: strings.LastIndex(text, rest), Len: len(rest), Message: fmt.Sprintf("%q after the call of %s", rest, name),
			Hint: "an aggregate is one call; compute with its result in select",
		}
	}
	call := Call{Name: name, Len: len(text)}
	if err := call.take(sig, args); err != nil {
		if err.Len == 0 {
			err.Offset, err.Len = open, end-open
		}
		return Call{}, err
	}
	return call, nil
}

// take checks the arguments against the signature and keeps them.
func (c *Call) take(sig signature, args []Arg) *Error {
	if sig.option != "" && len(args) > sig.least {
		if err := c.takeOption(sig, args[sig.least]); err != nil {
			return err
		}
		args = append(args[:sig.least:sig.least], args[sig.least+1:]...)
	} else if sig.option != "" {
		if sig.standard == 0 && len(args) == sig.least {
			hint := "write " + sig.example + ": without one the state could grow for ever"
			return &Error{Message: sig.name + " needs a limit", Hint: hint}
		}
		c.setOption(sig, sig.standard)
	}
	if len(args) < sig.least || len(args) > sig.most {
		return &Error{Message: fmt.Sprintf("%s does not take %d expressions", sig.name, len(args)), Hint: "write " + sig.example}
	}
	c.Args = args
	return nil
}

func (c *Call) takeOption(sig signature, arg Arg) *Error {
	n, err := strconv.Atoi(arg.Text)
	if err != nil || n < sig.lowest || n > sig.highest {
		return &Error{
			Offset: arg.Offset, Len: len(arg.Text),
			Message: fmt.Sprintf("the %s of %s is %s", sig.option, sig.name, arg.Text),
			Hint:    fmt.Sprintf("write a whole number from %d to %d", sig.lowest, sig.highest),
		}
	}
	c.setOption(sig, n)
	return nil
}

func (c *Call) setOption(sig signature, n int) {
	if sig.option == "limit" {
		c.Limit = n
	} else {
		c.Precision = n
	}
}

// head returns the function's name and where its parenthesis opens; -1 if none follows the name.
func head(text string) (name string, open int) {
	start := len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	end := start
	for end < len(text) && isWord(text[end]) {
		end++
	}
	rest := strings.TrimLeft(text[end:], " \t\r\n")
	if rest == "" || rest[0] != '(' {
		return text[start:end], -1
	}
	return text[start:end], len(text) - len(rest)
}

func isWord(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

func lookup(name string) (signature, bool) {
	for _, sig := range signatures {
		if sig.name == name {
			return sig, true
		}
	}
	return signature{}, false
}
