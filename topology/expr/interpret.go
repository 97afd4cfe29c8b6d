package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"millrace/record"
)

// The budgets of one evaluation on the virtual machine.
const (
	memoryBudget = 1_000_000 // elements of lists and maps that the virtual machine builds
	maxSteps     = 1_000_000 // evaluations of predicates
	maxText      = 16 << 20  // bytes of text that our operators build
)

// binding is what one task needs to evaluate a program: scratch memory and, if not native, a virtual machine. It is the
// environment that the virtual machine's code runs in, and leads the calls from there back to the row.
type binding struct {
	row       *record.Row
	scratch   []byte
	arguments []record.Value // of the operator that the virtual machine calls
	calls     []evaluator
	machine   vm.VM
	steps     int
	text      int
}

func (t *binding) interpreter(p *Program) evaluator {
	t.machine.MemoryBudget = memoryBudget
	for _, n := range p.calls {
		t.calls = append(t.calls, t.value(n))
	}
	return func(r *record.Row) (v record.Value, err error) {
		// The machine turns panics of functions into errors itself; this covers what lies around it.
		defer func() {
			if cause := recover(); cause != nil {
				v, err = record.Value{}, fmt.Errorf("%v", cause)
			}
		}()
		t.row, t.steps, t.text, t.scratch = r, 0, 0, t.scratch[:0]
		out, err := t.machine.Run(p.code, t)
		if err != nil {
			return record.Value{}, readable(err)
		}
		if v, err = fromAny(out); err != nil {
			return v, err
		}
		if !p.typ.Any && !v.IsNull() && v.Kind != p.typ.Kind {
			return v, fmt.Errorf("the result is %s, and %s was expected", v.Kind, p.typ)
		}
		return v, nil
	}
}

// operate is the function through which the virtual machine computes a node of ours: environment, number, operands.
func operate(arguments ...any) (any, error) {
	t, number := arguments[0].(*binding), arguments[1].(int)
	t.arguments = t.arguments[:0]
	for _, argument := range arguments[2:] {
		v, err := fromAny(argument)
		if err != nil {
			return nil, err
		}
		t.arguments = append(t.arguments, v)
	}
	v, err := t.calls[number](t.row)
	if err != nil {
		return nil, err
	}
	if t.text += len(v.Raw); t.text > maxText {
		return nil, errTextTooLong
	}
	t.scratch = t.scratch[:0] // toAny copies
	return toAny(v)
}

// step counts the evaluations of predicates, which are the only loops; its result is its operand.
func step(arguments ...any) (any, error) {
	t := arguments[0].(*binding)
	if t.steps++; t.steps > maxSteps {
		return nil, errTooManySteps
	}
	return arguments[1], nil
}

// readable takes the library's frame off an error and says the commonest one in our words.
func readable(err error) error {
	var found *file.Error
	if !errors.As(err, &found) {
		return err
	}
	if found.Prev != nil && !strings.HasPrefix(found.Prev.Error(), "interface conversion") {
		return found.Prev
	}
	message := found.Message
	if strings.Contains(message, "<nil>") || strings.Contains(message, "is nil") || strings.Contains(message, "nil pointer") {
		return fmt.Errorf("a function got null, which it cannot take (replace null by ??): %s", message)
	}
	return errors.New(message)
}
