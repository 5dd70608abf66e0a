#!/bin/sh
# Checks on a copy of the repository that Go's test cache is used, and that it never
# hides a change: a second run of black-box tests is cached, and after changing one
# line of the program under test, they run again.
set -eu
cd "$(dirname "$0")/../.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files --cached --others --exclude-standard | while read -r file; do [ ! -e "$file" ] || echo "$file"; done | tar -cf - -T - | tar -xf - -C "$copy"
cd "$copy"

run() { make -s test PKG=./test/clients/mcp; }

make -s prepare
sleep 3 # Go does not cache results of files that changed less than two seconds ago
run
case $(run) in *"(cached)"*) ;; *) echo "got a second run that is not cached, want it cached"; exit 1 ;; esac
sed -i.old 's/^func .*) ServeHTTP(.*{$/&\n\tw.Header().Set("X-Changed", "yes")/' rest/handler.go
! cmp -s rest/handler.go rest/handler.go.old || { echo "got no ServeHTTP in rest/handler.go, want one to change"; exit 1; }
case $(run) in *"(cached)"*) echo "got a cached result after a change of rest/handler.go, want the tests to run again"; exit 1 ;; esac
