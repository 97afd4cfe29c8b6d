package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"millrace/record"
)

// Decimal is how a decimal value looks on the virtual machine and to its functions, which know no decimals of their own.
type Decimal struct{ value record.Value }

func (d Decimal) String() string { return string(record.AppendDecimal(nil, d.value)) }

// MarshalJSON writes the decimal as a JSON number with all its digits.
func (d Decimal) MarshalJSON() ([]byte, error) { return record.AppendDecimal(nil, d.value), nil }

// bytesOf looks at a string as bytes that nobody writes to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// toAny returns v as the virtual machine has it. Nothing in it aliases v.
func toAny(v record.Value) (any, error) {
	switch v.Kind {
	case record.Bool:
		return v.Num != 0, nil
	case record.Long:
		return int(v.Num), nil
	case record.Double:
		return v.Float(), nil
	case record.Decimal:
		v.Raw = bytes.Clone(v.Raw)
		return Decimal{v}, nil
	case record.String:
		return string(v.Raw), nil
	case record.Bytes:
		return bytes.Clone(v.Raw), nil
	case record.Time:
		return time.UnixMilli(v.Num).UTC(), nil
	case record.Duration:
		return time.Duration(v.Num), nil
	case record.List, record.Map:
		decoder := json.NewDecoder(bytes.NewReader(v.Raw))
		decoder.UseNumber()
		var tree any
		if err := decoder.Decode(&tree); err != nil {
			return nil, fmt.Errorf("%s is not valid JSON: %w", v.Kind, err)
		}
		return withNumbers(tree), nil
	}
	return nil, nil
}

// withNumbers gives numbers the types that open fields have: long if written as an integer, double otherwise.
func withNumbers(tree any) any {
	switch t := tree.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(t), 10, 64); err == nil {
			return int(n)
		}
		f, _ := t.Float64() // too large a number becomes an infinity, which no result may contain
		return f
	case []any:
		for i := range t {
			t[i] = withNumbers(t[i])
		}
	case map[string]any:
		for k := range t {
			t[k] = withNumbers(t[k])
		}
	}
	return tree
}

// fromAny returns what the virtual machine computed. Lists and maps become JSON text.
func fromAny(v any) (record.Value, error) {
	switch t := v.(type) {
	case nil:
		return record.NullValue(), nil
	case bool:
		return record.BoolValue(t), nil
	case int:
		return record.LongValue(int64(t)), nil
	case float64:
		return record.DoubleValue(t), nil
	case Decimal:
		return t.value, nil
	case string:
		return record.StringValue(bytesOf(t)), nil
	case []byte:
		return record.BytesValue(t), nil
	case time.Time:
		return record.TimeValue(t.UnixMilli()), nil
	case time.Duration:
		return record.DurationValue(int64(t)), nil
	}
	tree, err := plain(reflect.ValueOf(v), 0)
	if err != nil {
		return record.Value{}, err
	}
	switch t := tree.(type) {
	case bool:
		return record.BoolValue(t), nil
	case string:
		return record.StringValue(bytesOf(t)), nil
	case int64:
		return record.LongValue(t), nil
	case float64:
		return record.DoubleValue(t), nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tree); err != nil {
		return record.Value{}, err
	}
	kind := record.Map
	if _, ok := tree.([]any); ok {
		kind = record.List
	}
	return record.Value{Kind: kind, Raw: bytes.TrimRight(text.Bytes(), "\n")}, nil
}

const maxNesting = 512

var errNesting = errors.New("the result is nested more than 512 levels deep")

// plain brings what functions return to what JSON has: integers of all sizes, lists of any element, maps by any key.
func plain(v reflect.Value, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errNesting
	}
	if !v.IsValid() {
		return nil, nil
	}
	switch t := v.Interface().(type) {
	case Decimal:
		return t, nil
	case time.Time:
		return string(appendText(nil, record.TimeValue(t.UnixMilli()))), nil
	case time.Duration:
		return t.String(), nil
	case []byte:
		return t, nil
	}
	switch v.Kind() {
	case reflect.Interface:
		return plain(v.Elem(), depth)
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return nil, errOverflow
		}
		return int64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			element, err := plain(v.Index(i), depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = element
		}
		return list, nil
	case reflect.Map:
		m := make(map[string]any, v.Len())
		for _, key := range v.MapKeys() {
			element, err := plain(v.MapIndex(key), depth+1)
			if err != nil {
				return nil, err
			}
			m[fmt.Sprint(key.Interface())] = element
		}
		return m, nil
	}
	return nil, fmt.Errorf("a value of type %s cannot leave an expression", v.Type())
}
