package rest

import (
	"embed"
	"fmt"
	"net/url"
	"strings"

	"palmares/graph"
	"palmares/internal/core/problem"
)

//go:embed queries/*.graphql
var queries embed.FS

// endpoint is a route that is ready to serve.
type endpoint struct {
	route
	segments  []string
	operation *graph.Operation
	arguments []argument
	counted   bool // it is a list: its answer tells how many there are
}

func buildEndpoints() ([]*endpoint, map[string]*graph.Operation, error) {
	operations, err := graph.LoadOperations(queries)
	if err != nil {
		return nil, nil, err
	}
	var endpoints []*endpoint
	for _, r := range routes {
		operation := operations[r.query]
		if operation == nil {
			return nil, nil, fmt.Errorf("%s: there is no operation %q in queries/", r.path, r.query)
		}
		e := &endpoint{route: r, segments: strings.Split(r.path, "/"), operation: operation}
		variables := operation.Definition().VariableDefinitions
		for _, p := range r.parameters {
			variable := variables.ForName(p.name)
			if variable == nil {
				return nil, nil, fmt.Errorf("%s: the operation has no variable $%s", r.path, p.name)
			}
			a := argumentOf(p, variable)
			e.counted = e.counted || a.name == "page"
			e.arguments = append(e.arguments, a)
		}
		if len(e.arguments) != len(variables) {
			return nil, nil, fmt.Errorf("%s: has %d parameters, its operation %d variables", r.path, len(e.arguments), len(variables))
		}
		endpoints = append(endpoints, e)
	}
	return endpoints, operations, nil
}

// find is the route of a path, taken segment by segment as it was sent, so
// that an escaped slash is part of a slug.
func (h *Handler) find(path string) (*endpoint, string, error) {
	sent := strings.Split(path, "/")
	for i := range sent {
		text, err := url.PathUnescape(sent[i])
		if err != nil || !isText(text) {
			return nil, "", problem.New(problem.BadInput, "The path holds a NUL, or what is not UTF-8.")
		}
		sent[i] = text
	}
	for _, e := range h.endpoints {
		if slug, ok := e.match(sent); ok {
			return e, slug, nil
		}
	}
	return nil, "", problem.New(problem.NotFound, "There is nothing at this path: %s lists what there is.", DocumentPath)
}

func (e *endpoint) match(sent []string) (slug string, ok bool) {
	if len(sent) != len(e.segments) {
		return "", false
	}
	for i, segment := range e.segments {
		switch {
		case segment == "{slug}" && sent[i] != "":
			slug = sent[i]
		case segment != sent[i]:
			return "", false
		}
	}
	return slug, true
}
