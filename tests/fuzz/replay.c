/* A fuzz target without libFuzzer: replays its corpus, then mutations of it by a seed.
 *
 *     replay_TARGET CORPUS [SEED [COUNT]]     100000 or 2 seconds, when none is given
 *     replay_TARGET FILE          one input, as libFuzzer wrote it
 */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "fuzz.h"

#define INPUTS_MAX 4096

struct input {
    uint8_t *data;
    size_t len;
    char name[256];
};

struct corpus {
    struct input *inputs;
    size_t n;
};

/* What runs now, for the report of a failure. */
static char running[512];

static void say_running(int sig)
{
    /* Nothing here may be half done: one write of what was prepared. */
    (void)!write(STDOUT_FILENO, running, strlen(running));
    if (sig != 0)
        _exit(99);
}

/* Of the sanitizers, where there are any. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void say_death(void)
{
    say_running(0);
}

static struct input read_input(const char *path, const char *name)
{
    struct input in = { .data = calloc(1, FUZZ_INPUT_MAX) };
    FILE *f = fopen(path, "rb");

    if (!f || !in.data) {
        printf("Bail out! %s cannot be read\n", path);
        exit(1);
    }
    in.len = fread(in.data, 1, FUZZ_INPUT_MAX, f);
    (void)fclose(f);
    (void)snprintf(in.name, sizeof(in.name), "%s", name);
    return in;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct input *)a)->name, ((const struct input *)b)->name);
}

static struct corpus read_corpus(const char *folder)
{
    struct corpus c = { .inputs = calloc(INPUTS_MAX, sizeof(*c.inputs)) };
    DIR *dir = opendir(folder);
    char path[4096];

    if (!dir || !c.inputs) {
        printf("Bail out! %s cannot be read\n", folder);
        exit(1);
    }
    for (struct dirent *e; (e = readdir(dir)) && c.n < INPUTS_MAX;) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        c.inputs[c.n++] = read_input(path, e->d_name);
    }
    (void)closedir(dir);
    qsort(c.inputs, c.n, sizeof(*c.inputs), by_name);
    return c;
}

static void free_corpus(struct corpus *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->inputs[i].data);
    free(c->inputs);
}

/* An exact copy, so that a sanitizer sees the first byte behind it. */
static void run(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);

    if (!copy)
        abort();
    memcpy(copy, data, len);
    (void)LLVMFuzzerTestOneInput(copy, len);
    free(copy);
}

/* --- mutations --- */

static const char *const words[] = {
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "false",
    "0",
    "-1",
    "2.0",
    "1e21",
    "9223372036854775807",
    "{}",
    "[]",
    "\"\"",
    "\n",
    "\"type\":",
    "\"enum\"",
    "\"items\"",
    "\"anyOf\":[",
    "\"a\"",
    "\"minimum\":",
    "{a}",
    "~0",
    "~1",
    "/a",
    "\"required\":[",
    "\xc3\xa4",
    "\\u00e4",
    "%2F",
    "/frame:",
    "\"properties\":{",
    "\"__session_id__\"",
    "\"const\":",
    "\"integer\"",
    "\"pointer\":\"/a\"",
};

struct mutant {
    uint8_t data[FUZZ_INPUT_MAX];
    size_t len;
};

static void replace(struct mutant *m, size_t at, size_t cut, const void *by, size_t n)
{
    if (m->len - cut + n > sizeof(m->data))
        return;
    memmove(m->data + at + n, m->data + at + cut, m->len - at - cut);
    memmove(m->data + at, by, n);
    m->len = m->len - cut + n;
}

static void mutate(struct mutant *m, const struct corpus *c, struct rng *r)
{
    size_t at = (size_t)rng_below(r, m->len + 1), left = m->len - at;
    const struct input *other = &c->inputs[rng_below(r, c->n)];
    const char *word = words[rng_below(r, COUNT_OF(words))];
    size_t from = (size_t)rng_below(r, other->len + 1);
    size_t cut = (size_t)rng_below(r, (left < 16 ? left : 16) + 1);
    uint8_t byte = (uint8_t)rng_below(r, 256);

    switch (rng_below(r, 6)) {
    case 0:
        replace(m, at, left > 0, &byte, 1);
        break;
    case 1:
        replace(m, at, cut, "", 0);
        break;
    case 2:
        replace(m, at, 0, word, strlen(word));
        break;
    case 3:
        replace(m, at, cut, word, strlen(word));
        break;
    case 4: /* a piece of another input */
        replace(m, at, cut, other->data + from,
                (size_t)rng_below(r, (other->len - from < 64 ? other->len - from : 64) +
                                         1));
        break;
    default: /* a digit of a number is changed, a piece is doubled */
        replace(m, at, 0, m->data + at, cut);
        break;
    }
}

/* How many ran: all of them, or as many as until the clock shows `until`. */
static uint64_t run_mutants(const struct corpus *c, uint64_t seed, uint64_t count,
                            time_t until)
{
    struct mutant *m = calloc(1, sizeof(*m));
    struct rng r;
    uint64_t i = 0;

    if (!m)
        abort();
    rng_init(&r, seed);
    for (; i < count && time(NULL) < until; i++) {
        const struct input *base = &c->inputs[rng_below(&r, c->n)];
        (void)snprintf(running, sizeof(running),
                       "# mutation %llu of seed %llu, from %s\n", (unsigned long long)i,
                       (unsigned long long)seed, base->name);
        memcpy(m->data, base->data, base->len);
        m->len = base->len;
        for (uint64_t k = 1 + rng_below(&r, 4); k > 0; k--)
            mutate(m, c, &r);
        run(m->data, m->len);
    }
    free(m);
    return i;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t count = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
    time_t until = time(NULL) + (argc > 3 ? 1000000 : 2);
    struct stat st;

    if (argc < 2 || stat(argv[1], &st) != 0) {
        printf("Bail out! usage: %s CORPUS|FILE [SEED [COUNT]]\n", argv[0]);
        return 2;
    }
    (void)signal(SIGABRT, say_running);
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(say_death);
    if (!S_ISDIR(st.st_mode)) {
        struct input in = read_input(argv[1], argv[1]);
        run(in.data, in.len);
        free(in.data);
        printf("ok 1 - %s holds\n1..1\n", argv[1]);
        return 0;
    }
    struct corpus c = read_corpus(argv[1]);
    for (size_t i = 0; i < c.n; i++) {
        (void)snprintf(running, sizeof(running), "# corpus %s\n", c.inputs[i].name);
        run(c.inputs[i].data, c.inputs[i].len);
    }
    printf("%sok 1 - every input of the corpus holds (%zu)\n", c.n > 0 ? "" : "not ",
           c.n);
    (void)fflush(stdout);
    if (c.n > 0)
        count = run_mutants(&c, seed, count, until);
    printf("ok 2 - %llu mutations by seed %llu hold\n1..2\n", (unsigned long long)count,
           (unsigned long long)seed);
    free_corpus(&c);
    return c.n > 0 ? 0 : 1;
}
