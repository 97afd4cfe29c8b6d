package record

// decimalText is a number's text taken apart.
type decimalText struct {
	whole, fraction []byte
	negative        bool
	exponent        int64
}

// ParseDecimal reads a number such as -12.30 or 1.5e3. The scale is as written: 12.30 has scale 2, 1.5e1 is 15. Anything
// else (NaN, hexadecimal, blanks) is an error. The result never aliases text.
func ParseDecimal(text []byte) (Value, error) {
	t, ok := splitDecimal(text)
	if !ok {
		return Value{}, errNotDecimal
	}
	scale := int64(len(t.fraction)) - t.exponent
	if scale > MaxDecimalDigits || scale < -MaxDecimalDigits || len(text) > 2*MaxDecimalDigits {
		return Value{}, ErrDecimalRange
	}
	zeros := max(0, -scale) // what a positive exponent appends
	scale = max(0, scale)
	if n, ok := t.small(zeros); ok {
		return DecimalValue(n, int32(scale)), nil
	}
	return t.large(text, zeros, int32(scale))
}

// small returns the coefficient if it has so few digits that int64 surely holds it.
func (t decimalText) small(zeros int64) (int64, bool) {
	if int64(len(t.whole)+len(t.fraction))+zeros >= int64(len(powersOfTen)) {
		return 0, false
	}
	var n int64
	for _, c := range t.whole {
		n = n*10 + int64(c-'0')
	}
	for _, c := range t.fraction {
		n = n*10 + int64(c-'0')
	}
	n *= powersOfTen[zeros]
	if t.negative {
		n = -n
	}
	return n, true
}

func (t decimalText) large(text []byte, zeros int64, scale int32) (Value, error) {
	digits := make([]byte, 0, len(text)+int(zeros)+1)
	if t.negative {
		digits = append(digits, '-')
	}
	digits = append(append(digits, t.whole...), t.fraction...)
	for range zeros {
		digits = append(digits, '0')
	}
	return decimalFromBig(coefficient(Value{Kind: Decimal, Raw: digits}), int64(scale))
}

func splitDecimal(text []byte) (t decimalText, ok bool) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		t.negative = text[0] == '-'
		text = text[1:]
	}
	t.whole, text = takeDigits(text)
	if len(t.whole) == 0 {
		return t, false
	}
	if len(text) > 0 && text[0] == '.' {
		t.fraction, text = takeDigits(text[1:])
		if len(t.fraction) == 0 {
			return t, false
		}
	}
	if len(text) > 0 && (text[0] == 'e' || text[0] == 'E') {
		if t.exponent, ok = parseExponent(text[1:]); !ok {
			return t, false
		}
		text = nil
	}
	return t, len(text) == 0
}

func takeDigits(text []byte) (digits, rest []byte) {
	n := 0
	for n < len(text) && text[n]-'0' <= 9 {
		n++
	}
	return text[:n], text[n:]
}

// parseExponent stops counting where the range check refuses the number anyway, so that it cannot overflow.
func parseExponent(text []byte) (int64, bool) {
	negative := false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		negative = text[0] == '-'
		text = text[1:]
	}
	digits, rest := takeDigits(text)
	if len(digits) == 0 || len(rest) > 0 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		n = min(n*10+int64(c-'0'), 1<<20)
	}
	if negative {
		n = -n
	}
	return n, true
}
