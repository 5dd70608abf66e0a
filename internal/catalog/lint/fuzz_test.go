package lint

import "testing"

// FuzzDisable checks that a comment disables a rule that can be disabled, or has a problem.
func FuzzDisable(f *testing.F) {
	for _, directive := range []string{"disable price -- checked", "disable prices -- checked", "disable price", "disable  price  --  x", "enable price", "disable lint-comment -- x"} {
		f.Add(directive)
	}
	f.Fuzz(func(t *testing.T, directive string) {
		name, problem := readDisable(directive)
		if (name == "") == (problem == "") {
			t.Fatalf("%q: got rule %q and problem %q, want one of them", directive, name, problem)
		}
		if rule, _ := FindRule(name); name != "" && (rule == nil || rule.always) {
			t.Errorf("%q: got rule %q, want one that can be disabled", directive, name)
		}
	})
}
