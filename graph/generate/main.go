// Generate runs gqlgen, and then takes out of the executor what our model has
// no use for. Fields below the root are plain struct fields that are filled in
// before anything is written (see package graph), so they need no context, no
// middleware and no goroutine of their own: gqlgen's list of 50 tools makes
// 12,000 allocations, and most of its time is spent on them.
//
//	go run ./graph/generate
package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate() error {
	cfg, err := config.LoadConfigFromDefaultLocations()
	if err != nil {
		return err
	}
	if err := api.Generate(cfg); err != nil {
		return err
	}
	code, err := os.ReadFile(cfg.Exec.Filename)
	if err != nil {
		return err
	}
	code, err = straighten(code)
	if err != nil {
		return err
	}
	return os.WriteFile(cfg.Exec.Filename, code, 0o644)
}

// plainField is how gqlgen resolves a field that only has to be read from its
// struct: the name of the struct's field and the function that writes it.
var plainField = regexp.MustCompile(
	`(?m)^(func \(ec \*executionContext\) _[^\s(]+\(ctx context\.Context, field graphql\.CollectedField, obj \*?model\.\w+\) \(ret graphql\.Marshaler\) \{\n)` +
		`	return graphql\.ResolveField\(\n		ctx,\n		ec\.OperationContext,\n		field,\n` +
		`		func\(ctx context\.Context, field graphql\.CollectedField\) \(\*graphql\.FieldContext, error\) \{\n[^\n]+\n		\},\n` +
		`		func\(ctx context\.Context\) \(any, error\) \{\n			return (obj\.\w+), nil\n		\},\n` +
		`		nil,\n` +
		`		func\(ctx context\.Context, selections ast\.SelectionSet, v [^\n]+\) graphql\.Marshaler \{\n			return (ec\.[^\s(]+)\(ctx, selections, v\)\n		\},\n` +
		`		true,\n		(?:true|false),\n	\)\n\}`)

// fewestFields tells that gqlgen writes its code another way than we know.
const fewestFields = 50

// straighten writes plain fields and lists without detours.
func straighten(code []byte) ([]byte, error) {
	if n := len(plainField.FindAllIndex(code, -1)); n < fewestFields {
		return nil, fmt.Errorf("only %d plain fields are found in gqlgen's code: does it write it otherwise now?", n)
	}
	code = plainField.ReplaceAll(code, []byte("${1}\treturn ${3}(ctx, field.Selections, ${2})\n}"))
	code = bytes.ReplaceAll(code, []byte("graphql.MarshalSliceConcurrently("), []byte("marshalSlice("))
	return append(code, marshalSlice...), nil
}

const marshalSlice = `
// marshalSlice writes a list one element after the other: there is nothing to
// wait for.
func marshalSlice(ctx context.Context, length int, _ int64, _ bool, marshalElement func(ctx context.Context, i int) graphql.Marshaler) graphql.Array {
	ret := make(graphql.Array, length)
	for i := range ret {
		ret[i] = marshalElement(ctx, i)
	}
	return ret
}
`
