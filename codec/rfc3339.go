package codec

// Times are milliseconds since the epoch everywhere inside; RFC 3339 text exists only at the edges. Both ways are written
// out here because the standard library's allocate for each time with an offset.

const (
	millisPerDay = 24 * 60 * 60 * 1000
	// daysToEpoch is the number of days from 0000-03-01 to 1970-01-01 in the proleptic Gregorian calendar.
	daysToEpoch = 719468
)

// ParseRFC3339 reads a time such as 2026-01-02T03:04:05.678+01:00 as milliseconds since the epoch. Digits beyond the
// millisecond are cut off; a leap second counts as the second after it.
func ParseRFC3339(b []byte) (ms int64, ok bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[4] != '-' || b[7] != '-' || b[13] != ':' || b[16] != ':' ||
		(b[10]|0x20 != 't' && b[10] != ' ') {
		return 0, false
	}
	year, ok1 := number4(b)
	month, ok2 := number2(b[5:], 12)
	day, ok3 := number2(b[8:], 31)
	hour, ok4 := number2(b[11:], 23)
	minute, ok5 := number2(b[14:], 59)
	second, ok6 := number2(b[17:], 60)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || month == 0 || day == 0 || day > daysIn(year, month) {
		return 0, false
	}
	ms = daysFromCivil(year, month, day)*millisPerDay + (hour*3600+minute*60+second)*1000
	rest := b[19:]
	if rest[0] == '.' {
		fraction, tail, ok := millis(rest[1:])
		if !ok {
			return 0, false
		}
		ms, rest = ms+fraction, tail
	}
	offset, ok := zoneOffset(rest)
	return ms - offset, ok
}

func number2(b []byte, limit int64) (int64, bool) {
	hi, lo := b[0]-'0', b[1]-'0'
	n := int64(hi)*10 + int64(lo)
	return n, hi <= 9 && lo <= 9 && n <= limit
}

func number4(b []byte) (int64, bool) {
	hi, ok1 := number2(b, 99)
	lo, ok2 := number2(b[2:], 99)
	return hi*100 + lo, ok1 && ok2
}

func millis(b []byte) (ms int64, rest []byte, ok bool) {
	n := 0
	for n < len(b) && b[n]-'0' <= 9 {
		if n < 3 {
			ms = ms*10 + int64(b[n]-'0')
		}
		n++
	}
	for i := n; i < 3; i++ {
		ms *= 10
	}
	return ms, b[n:], n > 0
}

// zoneOffset reads Z or +01:00, as milliseconds east of Greenwich.
func zoneOffset(b []byte) (int64, bool) {
	if len(b) == 1 {
		return 0, b[0]|0x20 == 'z'
	}
	if len(b) != len("+01:00") || b[3] != ':' || (b[0] != '+' && b[0] != '-') {
		return 0, false
	}
	hour, ok1 := number2(b[1:], 23)
	minute, ok2 := number2(b[4:], 59)
	offset := (hour*60 + minute) * 60_000
	if b[0] == '-' {
		offset = -offset
	}
	return offset, ok1 && ok2
}

func daysIn(year, month int64) int64 {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// daysFromCivil counts days from the epoch. Years begin in March here, so that a leap day is the last of its year.
func daysFromCivil(year, month, day int64) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	return 365*year + floorDiv(year, 4) - floorDiv(year, 100) + floorDiv(year, 400) + (153*(month-3)+2)/5 + day - 1 - daysToEpoch
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// AppendRFC3339 appends ms, milliseconds since the epoch, as UTC; the fraction only if there is one. A year that four
// digits cannot show is clamped to 0000 or 9999, since RFC 3339 has no text for it.
func AppendRFC3339(dst []byte, ms int64) []byte {
	const first, last = -62167219200000, 253402300799999
	ms = min(max(ms, first), last)
	days := floorDiv(ms, millisPerDay)
	rest := ms - days*millisPerDay
	year, month, day := civil(days)
	dst = appendPadded(dst, year, 4)
	dst = appendPadded(append(dst, '-'), month, 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	dst = appendPadded(append(dst, 'T'), rest/3_600_000, 2)
	dst = appendPadded(append(dst, ':'), rest/60_000%60, 2)
	dst = appendPadded(append(dst, ':'), rest/1000%60, 2)
	if rest%1000 != 0 {
		dst = appendPadded(append(dst, '.'), rest%1000, 3)
	}
	return append(dst, 'Z')
}

// civil is the inverse of daysFromCivil, over 400-year cycles of 146,097 days.
func civil(days int64) (year, month, day int64) {
	days += daysToEpoch
	cycle := floorDiv(days, 146097)
	inCycle := days - cycle*146097
	yearOf := (inCycle - inCycle/1460 + inCycle/36524 - inCycle/146096) / 365
	inYear := inCycle - (365*yearOf + yearOf/4 - yearOf/100)
	shifted := (5*inYear + 2) / 153
	day = inYear - (153*shifted+2)/5 + 1
	month = shifted + 3
	year = yearOf + cycle*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

func appendPadded(dst []byte, n int64, width int) []byte {
	start := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := start + width - 1; i >= start; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}
