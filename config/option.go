package config

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
)

// envPrefix begins the environment variable of every setting: kafka.client_id is MILLRACE_KAFKA_CLIENT_ID.
const envPrefix = "MILLRACE_"

// option is one setting as the struct declares it. The list of them, derived by reflection, is what file, environment and
// --set are checked against, so that a setting cannot exist in one of them only.
type option struct {
	key   string // kafka.sasl.username
	env   string
	words []string // allowed values; empty: any
	index []int    // path of the field in Settings
	typ   reflect.Type
	owner string // name of the struct that declares the field
	field string
}

func (o option) secret() bool { return o.typ == reflect.TypeFor[Secret]() }

// value returns the option's field in settings.
func (o option) value(settings *Settings) reflect.Value {
	return reflect.ValueOf(settings).Elem().FieldByIndex(o.index)
}

// options lists every setting in the order of the struct. The list is shared; nobody changes it.
var options = sync.OnceValue(listOptions)

func listOptions() []option {
	var list []option
	var walk func(t reflect.Type, prefix string, index []int)
	walk = func(t reflect.Type, prefix string, index []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			key := prefix + f.Tag.Get("mapstructure")
			at := append(append([]int(nil), index...), i)
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, key+".", at)
				continue
			}
			o := option{key: key, env: envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_")), index: at, typ: f.Type, owner: t.Name(), field: f.Name}
			if words := f.Tag.Get("words"); words != "" {
				o.words = strings.Split(words, "|")
			}
			list = append(list, o)
		}
	}
	walk(reflect.TypeFor[Settings](), "", nil)
	return list
}

// format writes an option's value as YAML would hold it.
func format(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case time.Duration:
		return formatDuration(value)
	case []string:
		return strings.Join(value, ",")
	default:
		return fmt.Sprint(value)
	}
}
