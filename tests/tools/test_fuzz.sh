#!/usr/bin/env bash
# tools/fuzz refuses what it does not know, and every target is run by make check, too.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

# Each target has a corpus that is not empty, and is declared.
declared() {
    local file name
    for file in "$root"/tests/fuzz/fuzz_*.c; do
        name=${file##*/fuzz_}
        name=${name%.c}
        compgen -G "$root/tests/corpus/$name/*" >/dev/null || return 1
        grep -q "'$name'" "$root/tests/fuzz/meson.build" || return 1
        grep -q "^| \`$name\` |" "$root/docs/testing.md" || return 1
    done
    [[ -n ${name-} ]]
}

# Each corpus belongs to a target.
owned() {
    local dir
    for dir in "$root"/tests/corpus/*/; do
        [[ -f $root/tests/fuzz/fuzz_$(basename "$dir").c ]] || return 1
    done
}

check 'a target that is not there is refused' \
    says 2 'no target is called nothing' "$root/tools/fuzz" nothing 1
check 'seconds are a number' says 2 'usage: tools/fuzz' "$root/tools/fuzz" event_schema 1s
check 'there are no more arguments' says 2 'usage: tools/fuzz' "$root/tools/fuzz" a 1 2
check 'every target has a corpus, is declared and described' declared
check 'every corpus has a target' owned
finish
