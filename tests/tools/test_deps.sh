#!/usr/bin/env bash
# tools/check-deps passes the tree and catches each kind of wrong include.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

# planted FILE LINE STATUS TEXT: a tree whose one file has that as its third line.
planted() {
    local tree
    tree=$(mktemp -d)
    mkdir -p "$tree/$(dirname "$1")"
    printf '/* note */\n\n%s\nint x;\n' "$2" >"$tree/$1"
    says "$3" "$4" "$root/tools/check-deps" "$tree"
}

# allows FILE LINE / forbids FILE LINE WHY
allows() { planted "$1" "$2" 0 ''; }
forbids() { planted "$1" "$2" 1 "$1:3: $3"; }

check 'the tree keeps the include table' "$root/tools/check-deps"

check 'a folder includes itself' allows src/base/a.c '#include "base/b.h"'
check 'work includes policy' allows src/work/a.c '#include "policy/b.h"'
check 'drivers include store' allows src/store/drivers/a.c '#include "store/b.h"'
check 'a folder below drivers counts as drivers' \
    allows src/store/drivers/pg/a.c '#include <libpq-fe.h>'
check 'src includes the installed headers' allows src/policy/a.c '#include <belay/error.h>'
check 'installed headers include each other' \
    allows include/belay/a.h '#include <belay/error.h>'
check 'installed headers include libc' allows include/belay/a.h '#include <stdint.h>'

check 'policy may not include store' \
    forbids src/policy/a.c '#include "store/b.h"' 'policy may not include store'
check 'store may not include its drivers' \
    forbids src/store/a.c '#include "store/drivers/b.h"' \
    'store may not include store/drivers'
check 'headers are checked like sources' \
    forbids src/base/a.h '#include "work/b.h"' 'base may not include work'
check 'spaces do not hide an include' \
    forbids src/cli/a.c '  #  include  "work/b.h"' 'cli may not include work'
check 'angle brackets do not hide an include' \
    forbids src/policy/a.c '#include <store/b.h>' 'policy may not include store'
check 'an include of src has quotes' \
    forbids src/store/a.c '#include <base/b.h>' 'headers of src are included with quotes'
check 'a header without its folder is refused' \
    forbids src/base/a.c '#include "b.h"' '"b.h" is in no folder of src'
check 'a path that climbs is refused' \
    forbids src/policy/a.c '#include "../store/b.h"' \
    '"../store/b.h" is in no folder of src'
check 'an include by macro is refused' \
    forbids src/base/a.c '#include HEADER' 'name the header itself'
check 'installed headers may not include src' \
    forbids include/belay/a.h '#include "base/b.h"' 'include/belay may not include base'
check 'installed headers may not include a library' \
    forbids include/belay/a.h '#include <jansson.h>' \
    'include/belay may not include jansson.h'
check 'a database library stays in the drivers' \
    forbids src/store/a.c '#include <sqlite3.h>' 'store may not include sqlite3.h'
check 'quotes do not hide a library' \
    forbids src/api/a.c '#include "hiredis/hiredis.h"' 'api may not include hiredis'
check 'the HTTP server library stays in server' \
    forbids src/api/a.c '#include <microhttpd.h>' 'api may not include microhttpd.h'
check 'the HTTP client library stays in client' \
    forbids src/cli/a.c '#include <curl/curl.h>' 'cli may not include curl/curl.h'
check 'OpenSSL stays in base and the drivers' \
    forbids src/policy/a.c '#include <openssl/sha.h>' 'policy may not include openssl'
check 'an unknown folder is refused' \
    planted src/misc/a.c '' 1 'src/misc/a.c:1: this folder is not in the include table'
check 'an empty tree is not a good tree' \
    says 1 'nothing to check' "$root/tools/check-deps" "$(mktemp -d)"

finish
