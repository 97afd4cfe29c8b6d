package clicks

import (
	"fmt"
	"strconv"
)

var (
	types     = [6]string{"click", "view", "scroll", "hover", "search", "leave"}
	pages     = [6]string{"/home", "/search", "/item", "/cart", "/checkout", "/profile"}
	countries = [8]string{"DE", "US", "BR", "IN", "JP", "FR", "GB", "NG"}
)

// userDigits is the length of a user's number, with leading zeros.
const userDigits = 10

// AppendUser writes a user's name, which is also the record's key.
func AppendUser(b []byte, user uint64) []byte {
	b = append(b, 'u')
	for unit := uint64(1_000_000_000); unit > 0; unit /= 10 {
		b = append(b, byte('0'+user/unit%10))
	}
	return b
}

// ParseUser reverses AppendUser.
func ParseUser(name []byte) (uint64, error) {
	if len(name) != userDigits+1 || name[0] != 'u' {
		return 0, fmt.Errorf("%q is no user", name)
	}
	return strconv.ParseUint(string(name[1:]), 10, 64)
}

// orders are the orders of the fields; Fixed and Nested use the first one only.
var orders = [4][7]int{{0, 1, 2, 3, 4, 5, 6}, {6, 3, 0, 5, 2, 1, 4}, {3, 1, 4, 6, 5, 0, 2}, {2, 5, 6, 4, 1, 3, 0}}

// AppendValue writes the JSON of a click.
func (s Stream) AppendValue(b []byte, c Click) []byte {
	order := &orders[0]
	if s.Variant == Shuffled {
		order = &orders[c.draw>>48%4]
	}
	b = append(b, '{')
	if s.Variant == Nested {
		// The object stands in front, so that a reader that takes the first "type" for the right one is found out.
		b = append(b, `"geo":{"type":"fix","lat":52.520008,"lon":13.404954,"place":"Stra\u00dfe des \"17. Juni\"\\Mitte"},"tags":["promo","new \u2713",null,17],"agent":"Mozilla/5.0 (X11; Linux x86_64)\tGecko/20100101 ünïcödé","ok":true,`...)
	}
	for i, field := range order {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendField(b, c, field)
	}
	return append(b, '}')
}

func appendField(b []byte, c Click, field int) []byte {
	switch field {
	case 0:
		b = append(b, `"user_id":"`...)
		b = AppendUser(b, c.User)
	case 1:
		b = append(append(b, `"type":"`...), c.kind()...)
	case 2:
		b = append(append(b, `"page":"`...), c.page()...)
	case 3:
		return strconv.AppendInt(append(b, `"ts":`...), c.Time, 10)
	case 4:
		b = append(append(b, `"country":"`...), c.country()...)
	case 5:
		b = append(b, `"ad_id":"a`...)
		b = strconv.AppendUint(b, 10_000+c.draw>>16%500, 10)
	case 6:
		return strconv.AppendUint(append(b, `"cents":`...), c.Cents, 10)
	}
	return append(b, '"')
}

func (c Click) kind() string    { return types[c.draw%6] }
func (c Click) page() string    { return pages[c.draw>>4%6] }
func (c Click) country() string { return countries[c.draw>>8%8] }

// appendFiltered writes what the filtering job makes of a click, or returns false when it keeps nothing.
func appendFiltered(b []byte, c Click) ([]byte, bool) {
	if c.kind() != "click" {
		return b, false
	}
	b = AppendUser(append(b, `{"user_id":"`...), c.User)
	b = append(append(b, `","site":"`...), c.page()...)
	b = append(append(b, `","country":"`...), c.country()...)
	b = strconv.AppendUint(append(b, `","cents":`...), c.Cents, 10)
	b = strconv.AppendBool(append(b, `,"dear":`...), c.Cents > 5000)
	return append(b, '}'), true
}
