#!/usr/bin/env bash
# The manual has the table of transitions as the library has it; a stale page is found.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# changed SED STATUS TEXT [--check]: a copy of the page, edited.
changed() {
    local page=$dir/page.md
    sed "$1" "$root/docs/executions.md" >"$page"
    says "$2" "$3" "$root/tools/draw-states" "${@:4}" "$BELAY_BUILD_ROOT" "$page"
}

redrawn() {
    changed '/^| T10 /d' 0 '' && cmp "$dir/page.md" "$root/docs/executions.md"
}

untouched() {
    changed '/^| T10 /d' 1 '+| T10 | complete' --check && ! grep -q '^| T10 ' "$dir/page.md"
}

check 'the page has the table as it is' \
    "$root/tools/draw-states" --check "$BELAY_BUILD_ROOT"
check 'a row that is missing is found' untouched
check 'a row that is not the table'\''s is found' \
    changed '/^| T10 /s/success/failed/' 1 'is stale' --check
check 'a page without a marker is refused' \
    changed '/transitions: end/d' 1 'markers' --check
check 'drawing puts it right and leaves the rest alone' redrawn
check 'a build without the program is an error' \
    says 1 'draw_states' "$root/tools/draw-states" --check "$dir"

finish
