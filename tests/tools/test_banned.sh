#!/usr/bin/env bash
# tools/check-banned passes the build and catches banned calls.
# shellcheck disable=SC2317 # cases are called by name
set -euo pipefail
root=$BELAY_SOURCE_ROOT
# shellcheck source=tests/tools/tap.sh
. "$root/tests/tools/tap.sh"

# planted OBJECT STATUS TEXT: a build with one object, made of the C on standard input.
planted() {
    local build
    build=$(mktemp -d)
    mkdir -p "$build/$(dirname "$1")"
    gcc -std=gnu17 -O2 -D_FORTIFY_SOURCE=2 -w -x c - -c -o "$build/$1" &&
        says "$2" "$3" "$root/tools/check-banned" "$build"
}

check 'the build has no banned call' "$root/tools/check-banned" "$BELAY_BUILD_ROOT"

object=src/store/libstore.a.p/a.c.o
check 'strcpy is caught behind _FORTIFY_SOURCE' \
    planted "$object" 1 "$object: strcpy is banned" <<'END'
#include <string.h>
char room[8];
void f(const char *s) { strcpy(room, s); }
END
check 'sprintf is caught' planted "$object" 1 "$object: sprintf is banned" <<'END'
#include <stdio.h>
void f(char *out, double d) { sprintf(out, "%f", d); }
END
check 'time is caught' planted "$object" 1 "$object: time is banned" <<'END'
#include <time.h>
long f(void) { return (long)time(NULL); }
END
check 'rand is caught in the program too' \
    planted belay.p/src_cli_main.c.o 1 'src_cli_main.c.o: rand is banned' <<'END'
#include <stdlib.h>
int f(void) { return rand(); }
END
check 'reading the clock outside clock.c is caught' \
    planted "$object" 1 "$object: clock_gettime belongs in src/base/clock.c alone" <<'END'
#include <time.h>
int f(struct timespec *t) { return clock_gettime(CLOCK_REALTIME, t); }
END
check 'a clock.c of another folder has no privilege' \
    planted src/store/libstore.a.p/clock.c.o 1 'nanosleep belongs' <<'END'
#include <time.h>
int f(struct timespec *t) { return nanosleep(t, t); }
END
check 'clock.c of base reads the clock' \
    planted src/base/libbase.a.p/clock.c.o 0 '' <<'END'
#include <time.h>
int f(struct timespec *t) { return clock_gettime(CLOCK_REALTIME, t); }
END
check 'clock.c of base may not use what is banned' \
    planted src/base/libbase.a.p/clock.c.o 1 'gmtime is banned' <<'END'
#include <time.h>
struct tm *f(time_t *t) { return gmtime(t); }
END
check 'names that only resemble banned ones are fine' planted "$object" 0 '' <<'END'
long strtok_own(void), gmtime_r_own(void), timer(void);
long f(void) { return strtok_own() + gmtime_r_own() + timer(); }
END
check 'a build without objects is an error' \
    says 1 'has no objects' "$root/tools/check-banned" "$(mktemp -d)"

finish
