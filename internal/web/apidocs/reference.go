package apidocs

import (
	"cmp"
	"html/template"
	"slices"
	"strings"

	"palmares/internal/core/lang"
	"palmares/internal/web/page"
	"palmares/rest"
)

// reference is the data of the reference.
type reference struct {
	Config // with the examples of the current release
	Script referenceScript
}

// referenceScript is the data of the reference's script.
type referenceScript struct {
	Document string `json:"document"`
	Key      string `json:"key,omitempty"` // of the signed-in user
	App      app    `json:"app"`
}

// referencePage returns the reference, with the key of the signed-in user or "".
func (p *Pages) referencePage(l lang.Language, operations []rest.Operation, key string) page.Content {
	data := reference{Config: p.Config, Script: referenceScript{Document: p.Document, Key: key, App: p.app("scalar")}}
	data.Operations = operations
	head := page.Head{Wide: true, Styles: style}
	if script := p.built["reference.js"]; script != "" {
		head.Scripts = []string{script}
	}
	content := p.Content(l, ReferencePath, head, data)
	content.Markdown = MarkdownPath
	return content
}

// group has the operations of a resource.
type group struct {
	Name       string
	Operations []rest.Operation
}

// groupNames are the names of resources by their tags; others are named after their list.
var groupNames = map[string]string{"comparatifs": "Comparisons", "pricing": "Prices", "categories": "Categories", "stats": "Statistics", "changes": "Changes", "embeddings": "Review texts"}

// Groups returns the operations by resource.
func (r reference) Groups() (groups []group) {
	for _, o := range r.Operations {
		at := slices.IndexFunc(groups, func(g group) bool { return g.Operations[0].Tag == o.Tag })
		if at < 0 {
			name, _, _ := strings.Cut(o.Summary, ",")
			at, groups = len(groups), append(groups, group{Name: cmp.Or(groupNames[o.Tag], name)})
		}
		groups[at].Operations = append(groups[at].Operations, o)
	}
	return groups
}

// Short returns the name of an operation of a group in the contents.
func (g group) Short(o rest.Operation) string {
	name, _, _ := strings.Cut(o.Summary, ",")
	switch _, extension, _ := strings.Cut(o.Path, "."); {
	case extension != "":
		return strings.ToUpper(extension)
	case slices.ContainsFunc(g.Operations, func(other rest.Operation) bool { return other.Path == o.Path+".csv" }):
		return "List " + strings.ToLower(g.Name)
	}
	return name
}

// Anchor returns the id of an operation, which is also its fragment in Scalar.
func (reference) Anchor(o rest.Operation) string { return "tag/" + o.Tag + "/GET" + o.Path }

// Link returns a link to an operation, without escaping its slashes.
func (r reference) Link(o rest.Operation) template.URL { return template.URL("#" + r.Anchor(o)) }

// Markup marks the code in a text. Names of objects are links.
func (r reference) Markup(text string) template.HTML {
	var marked strings.Builder
	for i, part := range strings.Split(text, "`") {
		escaped := template.HTMLEscapeString(part)
		switch {
		case i%2 == 0:
			marked.WriteString(escaped)
		case slices.ContainsFunc(r.Objects, func(o rest.Object) bool { return o.Name == part }):
			marked.WriteString(`<a href="#model/` + escaped + `"><code>` + escaped + "</code></a>")
		default:
			marked.WriteString("<code>" + escaped + "</code>")
		}
	}
	return template.HTML(marked.String()) // all parts are escaped
}

// operationsWith returns the operations with the examples of a release, or of the
// demo catalog if there are none.
func (p *Pages) operationsWith(samples *rest.Samples) []rest.Operation {
	operations := slices.Clone(p.Operations)
	for i, o := range operations {
		if example, found := samples.Paths[o.Path]; found {
			operations[i].Example = example
		}
	}
	return operations
}
