package record

import "testing"

func TestSectionsHashIsTheContracts(t *testing.T) {
	got := SectionsHash([]Section{{"verdict", "Bien."}, {"prix", "Juste."}})
	// printf 'verdict\0Bien.\0prix\0Juste.\0' | sha256sum
	if want := "sha256-3167db5b924ab0cb35705ef1a3c9a7883b5d9b5d6403d33423c378780ee17658"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
