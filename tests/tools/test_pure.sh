#!/usr/bin/env bash
# tools/check-pure passes the policy library and catches impure objects.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

# planted STATUS TEXT: the library made of the C on standard input.
planted() {
    local dir
    dir=$(mktemp -d)
    gcc -std=c17 -O2 -fPIC -D_FORTIFY_SOURCE=2 -x c - -c -o "$dir/planted.o" &&
        ar rcs "$dir/libplanted.a" "$dir/planted.o" &&
        says "$1" "$2" "$root/tools/check-pure" "$dir/libplanted.a"
}

# True of a policy that has no code yet, too.
policy_is_pure() {
    ! compgen -G "$root/src/policy/*.c" >/dev/null ||
        "$root/tools/check-pure" "$BELAY_BUILD_ROOT/src/policy/libpolicy.a"
}

check 'policy is pure' policy_is_pure

check 'memory, arena, bytes and reading JSON are pure' planted 0 '' <<'END'
#include <stddef.h>
#include <string.h>
void *arena_alloc(void *a, size_t n);
_Bool bytes_is_utf8(const void *p, size_t n);
size_t json_array_size(const void *v);
void *f(void *a, const void *v, size_t n)
{
    char *p = arena_alloc(a, json_array_size(v));
    return bytes_is_utf8(p, n) ? memcpy(p, v, n) : NULL;
}
END
check 'hashing and saying what is wrong are pure' planted 0 '' <<'END'
int sha256(const void *in, void *out, void *err);
void hex_encode(const void *in, char *out);
int err_reason(void *err, int code, const char *reason, const char *fmt, ...);
int f(const void *in, void *digest, char *hex, void *err)
{
    if (sha256(in, digest, err))
        return err_reason(err, 1, "hash", "no digest");
    hex_encode(digest, hex);
    return 0;
}
END
check 'text and JSON in an arena are pure' planted 0 '' <<'END'
struct buf { void *p, *arena; };
void buf_append_str(struct buf *b, const char *text);
int json_write(const void *value, struct buf *out, void *err);
int f(const void *value, void *arena)
{
    struct buf b = { 0, arena };
    buf_append_str(&b, "x");
    return json_write(value, &b, 0);
}
END
check 'chance is caught' planted 1 'calls random_bytes' <<'END'
int random_bytes(const void *hook, void *out, unsigned long n, void *err);
int f(const void *hook, void *out) { return random_bytes(hook, out, 16, 0); }
END
check 'a constant table of pointers is not state' planted 0 '' <<'END'
static int one(void) { return 1; }
static int two(void) { return 2; }
static int (*const table[])(void) = { one, two };
int f(int i) { return table[i](); }
END
check 'the clock is caught' planted 1 'planted.o]: calls time' <<'END'
#include <time.h>
long f(void) { return (long)time(NULL); }
END
check 'printing is caught behind _FORTIFY_SOURCE' planted 1 'calls __printf_chk' <<'END'
#include <stdio.h>
void f(int i) { printf("%d\n", i); }
END
check 'the heap is caught' planted 1 'calls malloc' <<'END'
#include <stdlib.h>
void *f(void) { return malloc(8); }
END
check 'building JSON is caught' planted 1 'calls json_object_set_new' <<'END'
int json_object_set_new(void *o, const char *k, void *v);
int f(void *o) { return json_object_set_new(o, "k", o); }
END
check 'a static counter is caught' planted 1 'is writable data' <<'END'
int f(void) { static int counter; return ++counter; }
END
check 'an initialised global is caught' planted 1 'limit is writable data' <<'END'
int limit = 7;
END
check 'a thread-local is caught' planted 1 'depth is writable data' <<'END'
_Thread_local int depth;
END
check 'a missing library is an error' \
    says 1 'nowhere.a' "$root/tools/check-pure" "$BELAY_BUILD_ROOT/nowhere.a"

finish
