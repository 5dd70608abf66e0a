package model

import (
	"reflect"
	"strings"

	"palmares/internal/catalog/release"
)

// ToolGroupMetrics returns the metrics of the selected fields of ToolGroup, and a function
// that converts groups with their values.
func ToolGroupMetrics(isSelected func(field string) bool) ([]release.Metric, func(release.Group) *ToolGroup) {
	var metrics []release.Metric
	var places []int // of the metrics in a ToolGroup
	for i, field := range reflect.VisibleFields(reflect.TypeFor[ToolGroup]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		metric, ok := release.MetricNamed(name)
		if ok && field.Type == reflect.TypeFor[*float64]() && isSelected(name) {
			metrics, places = append(metrics, metric), append(places, i)
		}
	}
	return metrics, func(g release.Group) *ToolGroup {
		group := &ToolGroup{Key: g.Keys[0], Count: g.Count, Tested: g.Tested}
		if g.Keys[1] != "" {
			group.ThenKey = &g.Keys[1]
		}
		for i, value := range g.Values {
			reflect.ValueOf(group).Elem().Field(places[i]).Set(reflect.ValueOf(value))
		}
		return group
	}
}
