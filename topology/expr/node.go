package expr

import (
	"regexp"

	"github.com/expr-lang/expr/ast"

	"millrace/record"
)

// op says what a node computes.
type op uint8

const (
	opConst op = iota
	opField    // slot
	opKey
	opTimestamp
	opHeader // name
	opTopic
	opPartition
	opOffset
	opWindowStart
	opWindowEnd
	opAcc
	opArgument // slot: an operand that the virtual machine computed

	opTruth // null counts as false
	opNot
	opAnd
	opOr
	opEqual
	opUnequal
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opIn // set
	opContains
	opStartsWith
	opEndsWith
	opMatches // pattern

	opAdd
	opSubtract
	opMultiply
	opDivide
	opModulo
	opPower
	opNegate
	opCoalesce
	opCondition

	opToLong
	opToDouble
	opToDecimal
	opToString
	opSeconds
	opMinutes
	opHours
	opMilliseconds
	opUnixMilli
)

var opNames = map[string]op{
	"==": opEqual, "!=": opUnequal, "<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual,
	"+": opAdd, "-": opSubtract, "*": opMultiply, "/": opDivide, "%": opModulo, "**": opPower, "^": opPower,
	"contains": opContains, "startsWith": opStartsWith, "endsWith": opEndsWith,
	"&&": opAnd, "and": opAnd, "||": opOr, "or": opOr,
}

// symbols are what error messages call the operators.
var symbols = map[op]string{
	opLess: "<", opLessEqual: "<=", opGreater: ">", opGreaterEqual: ">=", opAdd: "+", opSubtract: "-", opMultiply: "*",
	opDivide: "/", opModulo: "%", opPower: "**", opNegate: "-", opContains: "contains", opStartsWith: "startsWith",
	opEndsWith: "endsWith", opMatches: "matches", opToLong: "int()", opToDouble: "float()", opToDecimal: "decimal()",
	opToString: "string()", opSeconds: ".Seconds()", opMinutes: ".Minutes()", opHours: ".Hours()",
	opMilliseconds: ".Milliseconds()", opUnixMilli: ".UnixMilli()",
}

// node is a typed expression. A foreign node is one that only expr-lang's virtual machine can compute: its tree then has
// calls in the place of everything below that we compute ourselves.
type node struct {
	op      op
	typ     record.Type
	kids    []*node
	val     record.Value // opConst
	slot    int          // opField, opArgument
	name    string       // opHeader
	set     []record.Value
	pattern *regexp.Regexp
	tree    ast.Node
	foreign bool
	literal bool // a constant that the tree still spells as it is
}

var (
	anything   = record.Type{Any: true}
	boolean    = record.Type{Kind: record.Bool}
	nothing    = record.Type{Kind: record.Null, Nullable: true}
	longType   = record.Type{Kind: record.Long}
	doubleType = record.Type{Kind: record.Double}
	textType   = record.Type{Kind: record.String}
)

func (n *node) constant() bool { return n.op == opConst && !n.foreign }
