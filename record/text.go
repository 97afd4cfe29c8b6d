package record

import (
	"math"
	"strconv"
)

// AppendDouble appends f as the shortest text that reads back as f. Large and small numbers get an exponent at the same
// limits as in JavaScript and encoding/json. Sinks, keys and string(x) all use it, so that a number has one text.
func AppendDouble(dst []byte, f float64) []byte {
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
