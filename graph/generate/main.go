// Generate writes graph/model and graph/generated from the schema. It renders
// gqlgen's own templates, except that objects of our model are written straight
// into a buffer; executor.gotpl explains why.
//
//	go run ./graph/generate
package main

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/template"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/99designs/gqlgen/plugin/modelgen"
	"github.com/vektah/gqlparser/v2/ast"
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
	data.QueryRoot.DisableConcurrency = true // resolvers share a reader, and goroutines cost more than they save
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/99designs/gqlgen/codegen").Output()
	if err != nil {
		return fmt.Errorf("locating gqlgen's templates: %w", err)
	}
	return templates.Render(templates.Options{
		PackageName: cfg.Exec.Package,
		Filename:    cfg.Exec.Filename,
		Template:    executorTemplate,
		TemplateFS:  os.DirFS(strings.TrimSpace(string(dir))),
		Funcs: template.FuncMap{
			"isModel": isModel, "isPlain": isPlain, "isObjectList": isObjectList, "forGqlgen": forGqlgen, "onlyGqlgen": onlyGqlgen,
			"kind": kind, "isOptional": isOptional, "optionalValue": optionalValue, "expression": expression,
			"value": newValue, "resolved": resolved,
		},
		Data:            data,
		GeneratedHeader: true,
		Packages:        cfg.Packages,
		PruneOptions:    cfg.GetPruneOptions(),
	})
}

// isModel reports whether an object is one of our model.
func isModel(object *codegen.Object) bool { return !object.Root && !object.IsReserved() }

// isPlain reports whether a field of our model is read from its struct, or from a method
// whose only argument is a language.
func isPlain(field *codegen.Field) bool {
	method := field.IsMethod() && field.NoErr && !field.MethodHasContext &&
		!slices.ContainsFunc(field.Args, func(arg *codegen.FieldArgument) bool { return arg.Type.Name() != "Language" })
	return (field.IsVariable() || method) && !field.IsResolver && isModel(field.Object)
}

// resolved returns the names of the fields of our model that have a resolver.
func resolved(data *codegen.Data) []string {
	names := map[string]bool{}
	for _, object := range data.Objects {
		for _, field := range object.Fields {
			if isModel(object) && !isPlain(field) {
				names[field.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// expression returns how the value of a plain field is read.
func expression(field *codegen.Field) string {
	switch {
	case field.IsVariable():
		return "obj." + field.GoFieldName
	case len(field.Args) == 0:
		return "obj." + field.GoFieldName + "()"
	}
	return "obj." + field.GoFieldName + "(ec.language(field))"
}

// isObjectList reports whether gqlgen would start a goroutine for each element
// of a list.
func isObjectList(ref *config.TypeReference) bool {
	return ref.IsSlice() && !ref.Definition.IsInputType()
}

// value is an expression and its type, for the template of the same name.
type value struct {
	Ref   *config.TypeReference
	Value string
}

func newValue(ref *config.TypeReference, expression string) value { return value{ref, expression} }

// kind returns how the template writes a non-null type.
func kind(ref *config.TypeReference) string {
	object := ref.Definition.Kind == ast.Object && !strings.HasPrefix(ref.Definition.Name, "__")
	switch goType := ref.GO.String(); {
	case object && ref.IsSlice():
		return "objects"
	case object:
		return "object"
	case ref.IsSlice():
		return "other"
	case ref.Definition.Kind == ast.Enum || strings.TrimPrefix(goType, "*") == "string":
		return "text"
	case strings.TrimPrefix(goType, "*") == "int":
		return "int"
	case strings.TrimPrefix(goType, "*") == "float64":
		return "float"
	case strings.TrimPrefix(goType, "*") == "bool":
		return "bool"
	}
	return "other"
}

// isOptional reports whether nil stands for null.
func isOptional(ref *config.TypeReference) bool {
	return !ref.GQL.NonNull && ref.IsNilable() && kind(ref) != "other"
}

// optionalValue returns the expression for a field whose value is not nil.
func optionalValue(field *codegen.Field) string {
	if field.TypeReference.IsPtr() && kind(field.TypeReference) != "object" {
		return "*value"
	}
	return "value"
}

// forGqlgen returns the data without the parts that executor.gotpl writes.
func forGqlgen(data *codegen.Data) *codegen.Data {
	rest := *data
	rest.Objects = nil
	for _, object := range data.Objects {
		if isModel(object) { // only its fields with resolvers
			copied := *object
			copied.Fields = slices.DeleteFunc(slices.Clone(object.Fields), isPlain)
			rest.Objects = append(rest.Objects, &copied)
		} else {
			rest.Objects = append(rest.Objects, object)
		}
	}
	rest.ReferencedTypes = maps.Clone(data.ReferencedTypes)
	maps.DeleteFunc(rest.ReferencedTypes, func(_ string, ref *config.TypeReference) bool { return isObjectList(ref) })
	return &rest
}

// onlyGqlgen returns the data without the objects of our model.
func onlyGqlgen(data *codegen.Data) *codegen.Data {
	rest := *data
	rest.Objects = slices.DeleteFunc(slices.Clone(data.Objects), isModel)
	return &rest
}
