package server

import "palmares/internal/web/status"

// Row is a pattern of the table, with an example of its paths, for tests of its policy.
type Row struct {
	Pattern, Path                string
	Key, Identified, Basic       bool
	Counted, OnceADay            bool
	CORS, NoBody, Form, ReadOnly bool
	Localized                    bool
	Cached, Free, FreeIfCached   bool
}

// Rows returns all patterns.
func Rows() (rows []Row) {
	for pattern, rt := range newRoutes(table(handlers{})).byPattern {
		rows = append(rows, Row{
			Pattern: pattern, Path: examplePathOf(pattern), Key: rt.callers == key, Identified: rt.identifies(), Basic: rt.basic,
			Counted: rt.pays == quotaPays || rt.pays == dataOrPage || rt.pays == onceADay, OnceADay: rt.pays == onceADay,
			CORS: rt.cors, NoBody: rt.body == noBody, Form: rt.body == formBody, ReadOnly: rt.methods == "GET, HEAD", Localized: rt.localized, Cached: rt.cached == byRelease, Free: rt.pays == nobody, FreeIfCached: rt.pays == dataOrPage,
		})
	}
	return rows
}

// Recorder returns what counts requests for the availability.
func (s *Server) Recorder() *status.Recorder { return s.recorder }
