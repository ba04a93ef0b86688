#!/usr/bin/env bash
# tools/lint passes a clean tree, and each of its cases catches what it is there for.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

mkdir -p tools include/belay src/base build build-clang
cp "$root/tools/lint" tools/
cp "$root/.clang-format" "$root/.clang-tidy" .
cat >include/belay/good.h <<'END'
#ifndef BELAY_GOOD_H
#define BELAY_GOOD_H
int belay_good(int i);
#endif
END
cat >src/base/good.c <<'END'
#include <belay/good.h>

int belay_good(int i)
{
    return i + 1; /* a note on src/work/claim.c names no machine */
}
END
cat >tools/good <<'END'
#!/bin/sh
echo "$1"
END

# library: compile what is in src, as the real build would.
library() {
    gcc -shared -fPIC -Iinclude src/base/*.c -o build/libbelay.so
    python3 - <<'END' >build-clang/compile_commands.json
import glob, json, os
print(json.dumps([{"directory": os.getcwd() + "/build-clang", "file": "../" + path,
                   "command": f"clang -std=c17 -I../include -c ../{path}"}
                  for path in glob.glob("src/base/*.c")]))
END
}

library
check 'a clean tree passes' says 0 'ok 7' tools/lint

# Everything that follows is wrong in one way each.
cat >src/base/format.c <<'END'
int belay_format(int i);
int belay_format(int i) { return i; }
END
cat >src/base/tidy.c <<'END'
#include <stdlib.h>

int belay_tidy(const char *text);

int belay_tidy(const char *text)
{
    return atoi(text);
}
END
cat >src/base/cppcheck.c <<'END'
int belay_index(void);

int belay_index(void)
{
    int room[2] = { 1, 2 };
    return room[2];
}
END
cat >src/base/exported.c <<'END'
int stray(void);

int stray(void)
{
    return 1;
}
END
cat >tools/bad <<'END'
#!/bin/sh
echo $1
END
echo 'size_t belay_bad(void);' >include/belay/bad.h
slash=/ # or this line would be caught itself
echo "kept in ${slash}home/somebody" >notes.md
library 2>/dev/null
tools/lint >report 2>&1 || true

# caught NUMBER TEXT: the case failed and said so.
caught() {
    if ! grep -q "^not ok $1 " report || ! grep -q "^#.*$2" report; then
        cat report
        return 1
    fi
}

check 'wrong formatting is caught' caught 1 'format.c:2:.*clang-format'
check 'a finding of clang-tidy is caught' caught 2 'tidy.c:7:.*cert-err34-c'
check 'a finding of cppcheck is caught' caught 3 'cppcheck.c:6:.*out of bounds'
check 'a finding of shellcheck is caught' caught 4 'SC2086'
check 'a header that needs another is caught' caught 5 'bad.h:1:.*size_t'
check 'a stray exported symbol is caught' caught 6 'exported: stray'
check 'a path of one machine is caught' caught 7 'notes.md:1:kept in'
check 'a failed case fails the run' says 1 'not ok 7' tools/lint

rm build/libbelay.so build-clang/compile_commands.json
tools/lint >report 2>&1 || true
check 'a missing compilation database is not a pass' caught 2 'compile_commands.json'
check 'a missing library is not a pass' caught 6 'libbelay.so'

finish
