package config

import (
	"embed"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

//go:embed settings.go kafka.go
var declarations embed.FS

// Option is one setting, as the reference page shows it.
type Option struct {
	Key     string // kafka.session_timeout
	Env     string // MILLRACE_KAFKA_SESSION_TIMEOUT
	Default string // empty where there is none
	Words   []string
	Doc     string
}

// Reference lists every setting in the order of the file. The texts are the comments of the struct's fields, read from the
// source itself, so that there is nothing to keep in step.
func Reference() []Option {
	docs := fieldDocs()
	defaults := Default()
	var list []Option
	for _, o := range options() {
		list = append(list, Option{Key: o.key, Env: o.env, Default: format(o.value(&defaults)), Words: o.words, Doc: docs[o.owner+"."+o.field]})
	}
	return list
}

// fieldDocs returns the comment of each field by "Struct.Field", as one line.
func fieldDocs() map[string]string {
	docs := make(map[string]string)
	for _, name := range []string{"settings.go", "kafka.go"} {
		text, err := declarations.ReadFile(name)
		if err != nil {
			panic("config: " + err.Error()) // embedded by the compiler, so a bug of ours
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		if err != nil {
			panic("config: " + err.Error())
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, id := range f.Names {
						docs[spec.Name.Name+"."+id.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
			}
			return false
		})
	}
	return docs
}
