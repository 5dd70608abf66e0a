#!/bin/sh
# Prints the packages with files that changed since the branch left main, and
# the packages that import them directly. The tests of cmd start whole servers
# and take minutes, so cmd counts only if it changed itself.
set -eu
cd "$(dirname "$0")/../.."
base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)

changed=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u |
	while read -r file; do
		dir=$(dirname "$file")
		# Queries, templates and golden files belong to the package above them.
		until [ "$dir" = . ] || ls "$dir"/*.go >/dev/null 2>&1; do dir=$(dirname "$dir"); done
		[ "$dir" = . ] || [ ! -d "$dir" ] || echo "palmares/$dir"
	done | sort -u)
[ -n "$changed" ] || exit 0

{
	echo "$changed"
	go list -f '{{$p := .ImportPath}}{{range .Imports}}{{.}} {{$p}}{{"\n"}}{{end}}{{range .TestImports}}{{.}} {{$p}}{{"\n"}}{{end}}{{range .XTestImports}}{{.}} {{$p}}{{"\n"}}{{end}}' ./... |
		grep '^palmares/' | grep -v ' palmares/cmd/' |
		awk -v changed="$changed" 'BEGIN { split(changed, list, "\n"); for (i in list) known[list[i]] = 1 } known[$1] { print $2 }'
} | sort -u | grep -Ev '^palmares/(ent|graph/(generated|model))($|/)' || true
