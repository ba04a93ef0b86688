#include "program.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_in(const char *folder, size_t n, const char *name, char out[512])
{
    int length = snprintf(out, 512, "%.*s/%s", (int)n, folder, name);

    return n > 0 && length > 0 && length < 512 && access(out, X_OK) == 0;
}

bool bench_program_in(const char *folders, const char *name, char out[512])
{
    while (folders && *folders) {
        size_t n = strcspn(folders, ":");
        if (is_in(folders, n, name, out))
            return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

static void become(const struct bench_program *p, int in, int out)
{
    if ((p->env && setenv(p->env, p->value, 1)) || dup2(in, STDIN_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    (void)execv(p->path, (char *const *)p->argv);
    _exit(127);
}

bool bench_program_read(const struct bench_program *p,
                        bool (*reader)(FILE *out, void *arg), void *arg)
{
    size_t length = p->input ? strlen(p->input) : 0;
    int in[2], out[2], status = 1;
    bool found = false;

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        return false;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(p, in[0], out[1]);
    (void)close(in[0]);
    (void)close(out[1]);
    bool ok =
        pid > 0 && (length == 0 || write(in[1], p->input, length) == (ssize_t)length);
    (void)close(in[1]);
    FILE *f = fdopen(out[0], "r");
    if (f) {
        found = reader(f, arg);
        (void)fclose(f);
    }
    ok = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && ok && found;
    if (!ok)
        (void)fprintf(stderr, "bench: %s failed\n", p->argv[0]);
    return ok;
}

struct figure {
    double (*find)(FILE *out);
    double value;
};

static bool find_figure(FILE *f, void *arg)
{
    struct figure *figure = arg;

    figure->value = figure->find(f);
    return figure->value > 0;
}

double bench_program_figure(const struct bench_program *p, double (*figure)(FILE *out))
{
    struct figure found = { figure, 0 };

    return bench_program_read(p, find_figure, &found) ? found.value : 0;
}
