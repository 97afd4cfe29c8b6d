package config

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// appendJSON writes a node as JSON text, in the order of the file. Numbers keep their digits: 1.0 does not become 1, and a long beyond 2^53
// stays itself.
func appendJSON(out []byte, n *node) ([]byte, error) {
	var err error
	switch n.shape {
	case mapNode:
		out = append(out, '{')
		for i, e := range n.entries {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendJSONString(out, e.key.text), ':')
			if out, err = appendJSON(out, e.value); err != nil {
				return out, err
			}
		}
		return append(out, '}'), nil
	case listNode:
		out = append(out, '[')
		for i, item := range n.items {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = appendJSON(out, item); err != nil {
				return out, err
			}
		}
		return append(out, ']'), nil
	default:
		return appendJSONScalar(out, n)
	}
}

func appendJSONScalar(out []byte, n *node) ([]byte, error) {
	switch n.tag {
	case "!!null":
		return append(out, "null"...), nil
	case "!!bool":
		return append(out, strings.ToLower(n.text)...), nil
	case "!!int", "!!float":
		number, err := jsonNumber(n.text)
		return append(out, number...), err
	default:
		return appendJSONString(out, n.text), nil
	}
}

// jsonNumber rewrites the numbers that YAML has and JSON has not, such as 0x1F, +1 and 1_000.
func jsonNumber(text string) (string, error) {
	if json.Valid([]byte(text)) {
		return text, nil
	}
	if whole, ok := new(big.Int).SetString(text, 0); ok && len(text) < 64 {
		return whole.String(), nil
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err == nil {
		if encoded, err := json.Marshal(value); err == nil {
			return string(encoded), nil
		}
	}
	return "0", fmt.Errorf("%q is not a number that JSON has; quote it if text is meant", text)
}

func appendJSONString(out []byte, text string) []byte {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic("config: " + err.Error()) // strings always have a JSON form
	}
	return append(out, encoded...)
}
