#!/usr/bin/env bash
# The tour of `make run` gets to its end with the program that was built.
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

check 'the tour gets to its end' says 0 'What to type next' "$root/tools/tour"

finish
