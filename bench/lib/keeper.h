/* keeper.h - a process that has a server: it stops the server and removes its folder when
 * the benchmark ends, however it does. */
#ifndef BENCH_KEEPER_H
#define BENCH_KEEPER_H

#include <sys/types.h>

#include "disk.h"

struct bench_keeper {
    pid_t pid; /* 0: there is none */
    int leash; /* closed: the keeper ends */
};

/* What the keeper does, in its own process. */
struct bench_kept {
    const char *what;          /* for messages */
    int stop;                  /* the signal that ends the server */
    pid_t (*start)(void *arg); /* the server's process; -1: it does not start */
    bool (*answers)(void *arg);
    void *arg;
    struct bench_folder *folder;
};

/* A new folder on a disk, whatever the working directory is on. */
bool bench_keeper_folder(struct bench_folder *f);

/* Starts a keeper, before any thread is started, and waits until the server answers;
 * false, and said why, when it does not. */
bool bench_keeper_start(struct bench_keeper *k, const struct bench_kept *kept);
/* Also when it did not start.  A keeper holds the leashes of those before it: the last one
 * ends first. */
void bench_keeper_end(struct bench_keeper *k);

/* A port of 127.0.0.1 that nobody has just now; 0: there is none. */
int bench_free_port(void);

/* Starts a program in the folder, with its output in the file "log" there.  `first`, where
 * it is not NULL, runs in the new process and says whether to go on. */
pid_t bench_keeper_spawn(const char *folder, const char *program,
                         const char *const *argv, bool (*first)(void));

#endif /* BENCH_KEEPER_H */
