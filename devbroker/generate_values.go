package devbroker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"millrace/record"
)

// object is the JSON object, or one nested in it, that the declared fields make up; its members keep their order.
type object struct{ members []member }

type member struct {
	name   string
	quoted []byte   // the name as JSON
	words  []string // the name's words in lower case: what hints at plausible values
	field  record.Field
	inner  *object // nil: the member is a field
}

// add puts a field at the path, making the objects on the way.
func (o *object) add(path []string, f record.Field) error {
	for i, m := range o.members {
		if m.name != path[0] {
			continue
		}
		if m.inner == nil || len(path) == 1 {
			return fmt.Errorf("another field has its place in the record; rename one of them")
		}
		return o.members[i].inner.add(path[1:], f)
	}
	if path[0] == "" {
		return fmt.Errorf("part of its name is empty")
	}
	quoted, err := json.Marshal(path[0])
	if err != nil {
		return err
	}
	m := member{name: path[0], quoted: quoted, words: words(path[0])}
	if len(path) > 1 {
		m.inner = &object{}
		if err := m.inner.add(path[1:], f); err != nil {
			return err
		}
	} else {
		switch f.Type.Kind {
		case record.Duration, record.Null:
			return fmt.Errorf("no values can be generated for type %s; declare long or string", f.Type)
		}
		m.field = f
	}
	o.members = append(o.members, m)
	return nil
}

func (g *Generator) appendObject(b []byte, o *object, at time.Time) []byte {
	b = append(b, '{')
	for i, m := range o.members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, m.quoted...), ':')
		if m.inner != nil {
			b = g.appendObject(b, m.inner, at)
			continue
		}
		before := len(b)
		b = g.appendValue(b, m, at)
		if m.field.Name == g.options.Key && g.options.Key != "" {
			g.key = []byte(strings.Trim(string(b[before:]), `"`))
		}
	}
	return append(b, '}')
}

// oneInNull of a nullable field's values are null; the key never is, as most jobs reject such records.
const oneInNull = 50

func (g *Generator) appendValue(b []byte, m member, at time.Time) []byte {
	t := m.field.Type
	if t.Nullable && m.field.Name != g.options.Key && g.random.IntN(oneInNull) == 0 {
		return append(b, "null"...)
	}
	if t.Any {
		return g.appendText(b, m.words)
	}
	switch t.Kind {
	case record.Bool:
		return strconv.AppendBool(b, g.random.IntN(2) == 0)
	case record.Long:
		return strconv.AppendInt(b, g.wholeNumber(m.words), 10)
	case record.Double, record.Decimal:
		cents := 1 + g.random.Int64N(9999)
		return fmt.Appendf(b, "%d.%02d", cents/100, cents%100)
	case record.Time:
		if t.Form == record.EpochMillis {
			return strconv.AppendInt(b, at.UnixMilli(), 10)
		}
		return strconv.AppendQuote(b, at.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	case record.Bytes:
		return strconv.AppendQuote(b, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%08x", g.random.Uint32())))
	case record.List:
		return append(g.appendText(append(b, '['), m.words), ']')
	case record.Map:
		b = append(b, `{"name":`...)
		return append(g.appendText(b, m.words), '}')
	default:
		return g.appendText(b, m.words)
	}
}

// id picks one of the ids; a skew makes the small ones frequent.
func (g *Generator) id() int64 {
	if g.zipf != nil {
		return 1 + int64(g.zipf.Uint64())
	}
	return 1 + g.random.Int64N(distinctIDs)
}

func isID(words []string) bool { return words[len(words)-1] == "id" }

func (g *Generator) wholeNumber(words []string) int64 {
	switch {
	case isID(words):
		return g.id()
	case has(words, "status", "code"):
		return [...]int64{200, 200, 200, 200, 201, 204, 301, 400, 404, 500}[g.random.IntN(10)]
	case has(words, "cents", "amount", "price", "cost", "bytes", "size", "ms", "latency"):
		return 1 + g.random.Int64N(10_000)
	default:
		return 1 + g.random.Int64N(10)
	}
}

// vocabulary is looked through in order: the first line with a part of the field's name gives its words.
var vocabulary = []struct{ parts, words []string }{
	{[]string{"url", "page", "path", "uri"}, []string{
		"/", "/search", "/cart", "/checkout", "/account", "/help", "/items/17", "/items/42", "/offers"}},
	{[]string{"country"}, []string{"DE", "FR", "US", "IN", "BR", "JP", "GB", "NL"}},
	{[]string{"currency"}, []string{"EUR", "USD", "GBP", "JPY"}},
	{[]string{"status", "state", "outcome"}, []string{"ok", "ok", "ok", "ok", "pending", "failed"}},
	{[]string{"method"}, []string{"GET", "GET", "GET", "POST", "PUT", "DELETE"}},
	{[]string{"event", "type", "action", "kind"}, []string{"view", "view", "view", "click", "click", "purchase"}},
	{[]string{"device", "agent", "browser"}, []string{"phone", "tablet", "desktop"}},
	{[]string{"campaign", "channel", "referrer"}, []string{"search", "mail", "social", "direct"}},
	{[]string{"category"}, []string{"books", "garden", "music", "sports", "toys"}},
	{[]string{"city"}, []string{"Berlin", "Lyon", "Austin", "Pune", "Recife", "Osaka", "Leeds", "Delft"}},
	{[]string{"name", "user", "customer"}, []string{"ann", "bob", "eva", "ivo", "lea", "max", "noa", "tom"}},
	{[]string{"product", "item", "sku"}, []string{"lamp", "chair", "kettle", "desk", "clock", "vase"}},
}

var otherWords = []string{"amber", "birch", "coral", "delta", "ember", "fjord", "grove", "heron"}

func (g *Generator) appendText(b []byte, words []string) []byte {
	if isID(words) {
		letter, _ := utf8.DecodeRuneInString(words[0])
		if !unicode.IsLetter(letter) {
			letter = 'x' // Anything else might need escaping.
		}
		return fmt.Appendf(b, `"%c%d"`, letter, g.id())
	}
	choice := otherWords
	for _, v := range vocabulary {
		if has(words, v.parts...) {
			choice = v.words
			break
		}
	}
	return strconv.AppendQuote(b, choice[g.random.IntN(len(choice))])
}

// has tells whether one of the words begins with one of the parts.
func has(words []string, parts ...string) bool {
	for _, word := range words {
		for _, part := range parts {
			if strings.HasPrefix(word, part) {
				return true
			}
		}
	}
	return false
}

// words takes a name such as ad_id or adId apart, in lower case. There is always one at least.
func words(name string) []string {
	var found []string
	start, previous := 0, '_'
	for i, r := range name {
		if (unicode.IsUpper(r) && unicode.IsLower(previous) || !unicode.IsLetter(r) && !unicode.IsDigit(r)) && i > start {
			found = append(found, strings.ToLower(strings.Trim(name[start:i], "_-")))
			start = i
		}
		previous = r
	}
	found = append(found, strings.ToLower(strings.Trim(name[start:], "_-")))
	if found = slices.DeleteFunc(found, func(w string) bool { return w == "" }); len(found) == 0 {
		return []string{"value"}
	}
	return found
}
