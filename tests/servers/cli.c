#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"

static int run(const char *words, char *out, size_t size)
{
    FILE *f = popen(words, "r");
    size_t n = 0;

    out[0] = '\0';
    if (!f)
        return -1;
    while (n < size - 1 && !feof(f) && !ferror(f))
        n += fread(out + n, 1, size - 1 - n, f);
    out[n] = '\0';
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void cli_run(struct cli *out, const char *env, const char *url, const char *words)
{
    const char *root = getenv("BELAY_BUILD_ROOT");
    struct belay_clock clock = clock_system();
    char command[2048];

    (void)snprintf(command, sizeof(command), "%s '%s/belay' --store '%s' %s 2>&1", env,
                   root ? root : ".", url, words);
    int64_t began_us = clock.mono_us(clock.arg);
    out->status = run(command, out->text, sizeof(out->text));
    out->ms = (clock.mono_us(clock.arg) - began_us) / 1000;
}

bool shell_run(const char *words)
{
    char text[4096];

    if (run(words, text, sizeof(text)) == 0)
        return true;
    printf("# %s\n# %s\n", words, text);
    return false;
}
