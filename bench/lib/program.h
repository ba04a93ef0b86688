/* program.h - other programs: where they are, and what one of them says. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>

/* The program in one of the folders of a list like PATH; false: it is in none. */
bool bench_program_in(const char *folders, const char *name, char out[512]);

struct bench_program {
    const char *path;
    const char *const *argv;
    const char *input;       /* on its standard input; NULL: nothing */
    const char *env, *value; /* a variable of its environment and its value, or NULL */
};

/* Runs it and reads its output to the end; false, and said so, when it fails or `reader`
 * does. */
bool bench_program_read(const struct bench_program *p,
                        bool (*reader)(FILE *out, void *arg), void *arg);

/* Runs it and gives the figure that is in its output; 0, and said so, when it fails or
 * there is none. */
double bench_program_figure(const struct bench_program *p, double (*figure)(FILE *out));

#endif /* BENCH_PROGRAM_H */
