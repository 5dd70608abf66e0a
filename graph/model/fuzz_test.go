package model

import "testing"

// FuzzNodeID checks that an identifier is split without losing a part of it, and that those
// of another kind are rejected.
func FuzzNodeID(f *testing.F) {
	for _, id := range []string{"tool/plume", "category/", "release/8", "release/08", "evt_42", "evt_042", "tool/a@8", "comparison/a/b"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		prefix, key, ok := parseID(id)
		if ok && (prefix+key != id || key == "") {
			t.Errorf("%q: got %q and %q, want its parts", id, prefix, key)
		}
	})
}
