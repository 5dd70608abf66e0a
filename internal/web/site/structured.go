package site

// Structured data for search engines, as JSON-LD with the schema.org vocabulary.

type object = map[string]any

// graphOf returns a document with several objects. Those that are nil are left
// out.
func graphOf(objects ...object) any {
	var graph []object
	for _, o := range objects {
		if o != nil {
			graph = append(graph, o)
		}
	}
	return object{"@context": "https://schema.org", "@graph": graph}
}

// crumb is an item of a breadcrumb trail.
type crumb struct{ name, path string }

func breadcrumbs(r *request, crumbs ...crumb) object {
	var items []object
	for i, c := range crumbs {
		items = append(items, object{"@type": "ListItem", "position": i + 1, "name": c.name, "item": r.URL(c.path)})
	}
	return object{"@type": "BreadcrumbList", "itemListElement": items}
}

// itemList returns a list of tools, whose first has the given position.
func itemList(r *request, tools []tool, first int) object {
	if len(tools) == 0 {
		return nil
	}
	var items []object
	for i, t := range tools {
		items = append(items, object{"@type": "ListItem", "position": first + i, "name": t.Name, "url": r.URL(t.Path())})
	}
	return object{"@type": "ItemList", "itemListElement": items}
}
