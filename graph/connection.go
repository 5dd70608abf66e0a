package graph

import "palmares/graph/model"

// connected is a list that a connection shows a slice of.
type connected[Row, Node, Edge any] struct {
	count  func() (int, error)
	read   func(asked selection) ([]Row, error) // one row more than the slice holds, or the slice is told that there are more
	fill   func(rows []Row, asked selection) ([]Node, error)
	cursor func(Row) string
	edge   func(cursor string, node Node) Edge
}

// connection is a slice as every type of connection has it.
type connection[Node, Edge any] struct {
	edges []Edge
	nodes []Node
	info  *model.PageInfo
	total int
}

// connect reads a slice of a list: the count only if it is asked for, and
// nodes once, whether they are asked for alone or in their edges.
func connect[Row, Node, Edge any](s selection, sl *slice, list connected[Row, Node, Edge]) (connection[Node, Edge], error) {
	result := connection[Node, Edge]{edges: []Edge{}}
	var err error
	if s.has("totalCount") {
		if result.total, err = list.count(); err != nil {
			return result, err
		}
	}
	asked := s.of("nodes").with(s.of("edges").of("node").sets...)
	rows, err := list.read(asked)
	if err != nil {
		return result, err
	}
	rows, result.info = ends(sl, rows, list.cursor)
	if result.nodes, err = list.fill(rows, asked); err != nil {
		return result, err
	}
	for i, node := range result.nodes {
		result.edges = append(result.edges, list.edge(list.cursor(rows[i]), node))
	}
	return result, nil
}
