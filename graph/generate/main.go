// Generate writes graph/model and graph/generated from the schema. It renders
// gqlgen's own templates, but writes plain struct fields and lists without
// gqlgen's per-field context, middleware and goroutines: those made 12,000
// allocations for a list of 50 tools, and package graph fills in every struct
// before anything is written.
//
//	go run ./graph/generate
package main

import (
	_ "embed"
	"fmt"
	"go/build"
	"maps"
	"os"
	"slices"
	"text/template"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/99designs/gqlgen/plugin/modelgen"
)

//go:embed executor.gotpl
var executorTemplate string

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
	if err := cfg.LoadSchema(); err != nil {
		return err
	}
	if err := cfg.Init(); err != nil {
		return err
	}
	if err := modelgen.New().(*modelgen.Plugin).MutateConfig(cfg); err != nil {
		return err
	}
	data, err := codegen.BuildData(cfg)
	if err != nil {
		return err
	}
	gqlgen, err := build.Import("github.com/99designs/gqlgen/codegen", ".", build.FindOnly)
	if err != nil {
		return err
	}
	return templates.Render(templates.Options{
		PackageName:     cfg.Exec.Package,
		Filename:        cfg.Exec.Filename,
		Template:        executorTemplate,
		TemplateFS:      os.DirFS(gqlgen.Dir),
		Funcs:           template.FuncMap{"isPlain": isPlain, "isObjectList": isObjectList, "forGqlgen": forGqlgen},
		Data:            data,
		GeneratedHeader: true,
		Packages:        cfg.Packages,
		PruneOptions:    cfg.GetPruneOptions(),
	})
}

// isPlain reports whether a field of our model is read from its struct.
func isPlain(field *codegen.Field) bool {
	return field.IsVariable() && !field.IsResolver && !field.Object.Root && !field.Object.IsReserved()
}

// isObjectList reports whether gqlgen would start a goroutine for each element
// of a list.
func isObjectList(ref *config.TypeReference) bool {
	return ref.IsSlice() && !ref.Definition.IsInputType()
}

// forGqlgen returns the data without what executor.gotpl writes itself.
func forGqlgen(data *codegen.Data) *codegen.Data {
	rest := *data
	rest.Objects = nil
	for _, object := range data.Objects {
		copied := *object
		copied.Fields = slices.DeleteFunc(slices.Clone(object.Fields), isPlain)
		rest.Objects = append(rest.Objects, &copied)
	}
	rest.ReferencedTypes = maps.Clone(data.ReferencedTypes)
	maps.DeleteFunc(rest.ReferencedTypes, func(_ string, ref *config.TypeReference) bool { return isObjectList(ref) })
	return &rest
}
