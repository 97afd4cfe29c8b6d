package expr

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"millrace/record"
)

// Names of the functions that rewritten trees call. The blank keeps them out of reach of what users can write.
const stepName = "count step"

func sortedName(name string) string { return "sorted " + name }

func callbackName(t record.Type) string {
	if t.Any {
		return "operator any"
	}
	return "operator " + t.Kind.String()
}

// machineTypes are the Go types that values have on the virtual machine, which the library checks its functions against.
var machineTypes = map[record.Kind]reflect.Type{
	record.Bool: reflect.TypeFor[bool](), record.Long: reflect.TypeFor[int](), record.Double: reflect.TypeFor[float64](),
	record.Decimal: reflect.TypeFor[Decimal](), record.String: reflect.TypeFor[string](), record.Bytes: reflect.TypeFor[[]byte](),
	record.Time: reflect.TypeFor[time.Time](), record.Duration: reflect.TypeFor[time.Duration](),
	record.List: reflect.TypeFor[[]any](), record.Map: reflect.TypeFor[map[string]any](),
}

func libraryConfig() *conf.Config {
	config := conf.New(nil)
	config.MaxNodes = maxNodes
	config.Optimize = false // it folds constants by the library's arithmetic, not by ours
	config.Disabled["now"] = true
	delete(config.Builtins, "now")
	return config
}

// link checks a rewritten tree and compiles it for the virtual machine.
func link(src string, tree *parser.Tree, config *conf.Config) (*vm.Program, *Error) {
	anyOf := reflect.TypeFor[any]()
	define := func(name string, f func(...any) (any, error), result reflect.Type) {
		signature := reflect.FuncOf([]reflect.Type{reflect.SliceOf(anyOf)}, []reflect.Type{result}, true)
		config.Functions[name] = &builtin.Function{Name: name, Func: f, Types: []reflect.Type{signature}}
	}
	define(stepName, step, anyOf)
	define(callbackName(anything), operate, anyOf)
	define(callbackName(nothing), operate, anyOf)
	for kind, t := range machineTypes {
		define(callbackName(record.Type{Kind: kind}), operate, t)
	}
	for name, f := range sorted {
		define(sortedName(name), f, reflect.TypeFor[[]any]())
	}
	if _, err := checker.Check(tree, config); err != nil {
		return nil, fromLibrary(src, err)
	}
	code, err := compiler.Compile(tree, config)
	if err != nil {
		return nil, fromLibrary(src, err)
	}
	return code, nil
}

// sorted are the functions whose result has no order in the library: Go's maps have none, and a record that is processed
// again must give the same result.
var sorted = map[string]func(...any) (any, error){
	"keys": func(arguments ...any) (any, error) {
		return pairs(arguments, func(k, _ any) any { return k })
	},
	"values": func(arguments ...any) (any, error) {
		return pairs(arguments, func(_, v any) any { return v })
	},
	"toPairs": func(arguments ...any) (any, error) {
		return pairs(arguments, func(k, v any) any { return []any{k, v} })
	},
}

func pairs(arguments []any, of func(k, v any) any) (any, error) {
	if len(arguments) != 1 {
		return nil, fmt.Errorf("invalid number of arguments (expected 1, got %d)", len(arguments))
	}
	m := reflect.ValueOf(arguments[0])
	if m.Kind() != reflect.Map {
		return nil, fmt.Errorf("want a map, got %s", kindName(arguments[0]))
	}
	keys := m.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	out := make([]any, 0, len(keys))
	for _, k := range keys {
		out = append(out, of(k.Interface(), m.MapIndex(k).Interface()))
	}
	return out, nil
}

func kindName(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprintf("%T", v)
}
