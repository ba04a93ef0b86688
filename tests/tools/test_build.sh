#!/usr/bin/env bash
# tools/build is incremental, follows changes, and mends a broken directory.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

mkdir tools
cp "$root/tools/build" "$root/tools/bench" tools/
cat >meson.build <<'END'
project('belay', 'c', default_options: ['buildtype=debugoptimized'])
sum = executable('sum', 'sum.c', install: true)
benchmark('sum.one', sum)
END
cat >sum.c <<'END'
#include <stdio.h>
int main(int argc, char **argv)
{
    int sum = argc > 1 ? 0x7fffffff : 1;
    sum += argc;
    printf("{\"bench\":\"%s\",\"sum\":%d}\n", argc > 1 ? argv[1] : "sum.one", sum);
    return 0;
}
END

newly_made() { says 0 "configuring build" tools/build "$@"; }
unchanged() { says 0 'no work to do' tools/build plain && [[ -e build/kept ]]; }

follows() {
    echo "executable('another', 'sum.c')" >>meson.build
    tools/build plain && build/another && [[ -e build/kept ]]
}

mistake() {
    local status=0
    cp meson.build good
    echo 'mistake(' >>meson.build
    says 1 'ERROR' tools/build plain || status=1
    mv good meson.build
    [[ $status -eq 0 && -e build/kept && -x build/sum ]]
}

mends() {
    : >build/build.ninja
    rm -r build/meson-private
    newly_made plain && [[ ! -e build/kept ]] && build/sum
}

follows_compiler() {
    sed -i 's/^gcc.*/gcc of last year/' build/configured
    newly_made plain && unchanged_after_touch
}

unchanged_after_touch() { touch build/kept && unchanged; }

finding_is_fatal() {
    newly_made asan && build-asan/sum && ! build-asan/sum overflow
}

with_prefix() {
    tools/build --prefix /opt/sum plain &&
        DESTDIR=$PWD/dest meson install -C build --no-rebuild &&
        [[ -x dest/opt/sum/bin/sum ]]
}

last_line() { [[ $(tools/bench sum.one | tail -n 1) == '{"bench":"sum.one","sum":2}' ]]; }
leaves_nothing() { tools/bench && ! compgen -G 'build/bench-run-*'; }

check 'a fresh checkout is configured and built' newly_made plain
check 'a second run does nothing' unchanged_after_touch
check 'a changed meson.build is followed' follows
check 'a mistake in meson.build is shown and keeps the directory' mistake
check 'a broken directory is made anew' mends
check 'another compiler version makes the directory anew' follows_compiler
check 'undefined behaviour ends a program of the sanitizer build' finding_is_fatal
check 'the prefix can be changed' with_prefix
check 'an unknown build is a usage error' says 2 'no build is called' tools/build fast
check 'no build is a usage error' says 2 'usage: tools/build' tools/build
check 'a benchmark ends with its JSON line' last_line
check 'benchmarks leave nothing behind' leaves_nothing
check 'an unknown benchmark is answered with the known ones' \
    says 1 'no benchmark is called x; declared: sum.one' tools/bench x

finish
