package rest

import "testing"

// A route without its operation, or with other parameters than that has
// variables, does not start.
func TestRoutesNeedTheirOperations(t *testing.T) {
	whole := routes
	defer func() { routes = whole }()
	for _, wrong := range []route{
		{path: "/api/v1/x", query: "nothing"},
		{path: "/api/v1/x", query: "stats", parameters: paging},
		{path: "/api/v1/x", query: "tool"},
	} {
		routes = append(whole[:len(whole):len(whole)], wrong)
		if _, _, err := buildEndpoints(); err == nil {
			t.Errorf("%+v starts", wrong)
		}
	}
}

// Every operation in queries/ has its use.
func TestNoOperationIsLeftOver(t *testing.T) {
	endpoints, operations, err := buildEndpoints()
	if err != nil {
		t.Fatal(err)
	}
	delete(operations, "whereabouts")
	delete(operations, "samples")
	for _, e := range endpoints {
		delete(operations, e.query)
	}
	if len(operations) > 0 {
		t.Errorf("left over: %v", operations)
	}
}
