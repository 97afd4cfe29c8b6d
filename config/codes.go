package config

import "millrace/topology"

// The codes of this package's findings. A code never changes its meaning: people search for it, and pipelines match it.
// MR11xx belongs to the checks of the topology.
const (
	codeUnreadable   = "MR1001"
	codeSyntax       = "MR1002"
	codeTooBig       = "MR1003"
	codeUnknownKey   = "MR1004"
	codeDuplicateKey = "MR1005"
	codeShape        = "MR1006"
	codeMissing      = "MR1007"
	codeValue        = "MR1008"
	codeWord         = "MR1009"
	codeName         = "MR1010"
	codeReference    = "MR1011"
	codeFieldType    = "MR1012"
	codeTest         = "MR1013"

	codeSetFlag     = "MR1201"
	codeAddress     = "MR1202"
	codeDisagree    = "MR1203"
	codeUnavailable = "MR1204"
	codeSecurity    = "MR1205"
	codeRange       = "MR1206"

	warnLiteralSecret = "W1201"
	warnPlaintext     = "W1202"
	warnSkipVerify    = "W1204"
	warnSecretMode    = "W1205"
)

// Code is one entry of the table of findings: what `docs CODE` and the reference page print.
type Code struct{ Code, Meaning string }

// Codes returns the findings of this package in the order of their codes.
func Codes() []Code {
	return []Code{
		{codeUnreadable, "a configuration file cannot be read"},
		{codeSyntax, "a file is not valid YAML, is empty, or holds more than one document"},
		{codeTooBig, "a file exceeds a bound: 1 MiB of text, 100,000 nodes after aliases, 64 levels"},
		{codeUnknownKey, "a key that nothing reads: most often a misspelt one"},
		{codeDuplicateKey, "a key is written twice in one map"},
		{codeShape, "a value has the wrong shape: a map, a list or a plain value was expected"},
		{codeMissing, "a required key is missing"},
		{codeValue, "a value does not have the form that its key asks for: a duration, a size, a number, true or false"},
		{codeWord, "a value is not one of the words that its key allows"},
		{codeName, "the name of a source, step, sink or application has a forbidden form"},
		{codeReference, "a ${env:…} or ${file:…} reference is malformed or has nothing to refer to"},
		{codeFieldType, "a field is declared with an unknown type"},
		{codeTest, "a step or an expectation of a test is malformed"},
		{codeSetFlag, "--set does not name a setting, or has no value"},
		{codeAddress, "an address is not of the form host:port"},
		{codeDisagree, "two settings do not fit together, most often two timeouts"},
		{codeUnavailable, "a setting asks for something that this version does not have"},
		{codeSecurity, "the settings of tls, sasl or http are incomplete or contradict each other"},
		{codeRange, "a number, a duration or a size lies outside of its range"},
		{warnLiteralSecret, "a secret is written into a file instead of being referred to"},
		{warnPlaintext, "a password would cross the network unencrypted"},
		{warnSkipVerify, "the brokers' certificates are not verified"},
		{warnSecretMode, "a file with a secret may be read by every user of the machine"},
	}
}

// findings collects what is wrong, so that a reader sees everything at once instead of one error a run.
type findings struct{ list []topology.Finding }

func (f *findings) add(found topology.Finding) { f.list = append(f.list, found) }

func (f *findings) errorAt(pos topology.Pos, code, message, hint string) {
	f.add(topology.Finding{Severity: topology.Error, Code: code, Pos: pos, Message: message, Hint: hint})
}

// at reports an error about a node and underlines the node's text.
func (f *findings) at(n *node, code, message, hint string) {
	f.add(topology.Finding{Severity: topology.Error, Code: code, Pos: n.pos, Len: n.width, Message: message, Hint: hint})
}

func (f *findings) warn(pos topology.Pos, code, message, hint string) {
	f.add(topology.Finding{Severity: topology.Warning, Code: code, Pos: pos, Message: message, Hint: hint})
}

// HasErrors tells whether one of the findings keeps the job from starting.
func HasErrors(list []topology.Finding) bool {
	for _, f := range list {
		if f.Severity == topology.Error {
			return true
		}
	}
	return false
}

// Unreadable tells whether a finding says that a file named by the user cannot be read at all.
func Unreadable(f topology.Finding) bool { return f.Code == codeUnreadable && f.Pos.Line == 0 }
