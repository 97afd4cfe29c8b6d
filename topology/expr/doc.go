// Package expr compiles the expressions of a job: expr-lang's syntax, typed against the declared fields, evaluated on rows
// without decoding them into maps.
//
// What the hot path needs (field paths, comparisons, boolean logic, arithmetic, string tests, conversions) is compiled to
// closures that allocate nothing. Every other thing that expr-lang has (its functions, list predicates, let) runs on its
// virtual machine, which then calls the same operators for everything above. So an expression means the same whichever way
// it runs; Program.Native tells which. The package knows no clock: now() does not exist here, and functions whose result
// depends on the order of a Go map return it sorted, since a record that is processed again must give the same result.
//
// # Null and missing
//
// A null field and a missing one are the same to an expression.
//   - x == nil is true for both. null == null is true; null == anything else is false; != is always the opposite of ==.
//   - <, <=, >, >= with null are false, and so are contains, startsWith, endsWith and matches. x in [..] is false unless the
//     list has nil in it.
//   - Arithmetic, concatenation, conversions and the methods of times and durations give null if an operand is null.
//   - ?? replaces null. A condition (where, having, ?:, &&, ||, not) takes null as false, so that not null is true; the
//     result of these operators is never null.
//   - A function of expr-lang that cannot take null fails at run time; use ?? in its argument. Its functions know no
//     decimals either; use float(x) there.
//
// # Numbers
//
//   - long: 64 bits; overflow is an error, never a wrong number. decimal: exact, also beyond 64 bits. double: IEEE 754.
//   - long with decimal gives decimal, anything with double gives double. A literal takes the type of the other side, so
//     that a decimal field * 1.5 is exact.
//   - Comparisons between long, decimal and double compare the numbers. long with double is exact, decimal with double is
//     compared as doubles.
//   - / always gives a double; dividing by zero is an error. % needs whole numbers. ** and ^ give a double.
//   - A comparison for order, or arithmetic, between kinds that have none in common is an error: when compiling if the types
//     are declared, otherwise at run time. == between such values is false at run time.
//
// # Time
//
// time - time is a duration; time + duration and time - duration are times, duration / duration a double. duration("10s") and date("2026-01-02")
// are constants. Durations have .Seconds(), .Minutes(), .Hours() (doubles) and .Milliseconds() (long); times have
// .UnixMilli() (long). Times have millisecond resolution.
//
// # Conversions
//
// int(x) cuts off the fraction, float(x), string(x) and decimal(x) convert between numbers and text; text that is no number
// is an error.
//
// # Cost
//
// An expression has at most 1000 nodes. What runs on the virtual machine has a memory budget, and its list predicates a
// budget of steps; an expression that exceeds one fails with an error for that record.
package expr
