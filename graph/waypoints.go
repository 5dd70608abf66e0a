package graph

import "palmares/graph/model"

// waypointsKey names the waypoints of a list.
type waypointsKey struct {
	release int
	filter  string
	sort    model.ToolSort
}
