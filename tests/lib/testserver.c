#include "testserver.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16

static void run_script(const char *script, const char *const *arguments, int in,
                       int out)
{
    const char *root = getenv("BELAY_SOURCE_ROOT");
    const char *argv[ARGUMENTS_MAX + 2] = { script };
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/tests/lib/%s", root ? root : ".", script);
    for (size_t i = 0; i < ARGUMENTS_MAX && arguments[i]; i++)
        argv[i + 1] = arguments[i];
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(126);
    (void)execv(path, (char *const *)argv);
    _exit(127);
}

/* Takes an answer; false, and told, when it is none or "failed". */
static bool take_answer(struct test_server *s, const char *want, char *line, int size)
{
    size_t n = strlen(want);
    bool any = fgets(line, size, s->answers) != NULL;

    if (any && strncmp(line, want, n) == 0) {
        line[strcspn(line, "\n")] = '\0';
        return true;
    }
    printf("# %s: %s", s->script, any ? line : "no answer\n");
    return false;
}

static void take_words(struct test_server *s, char *line)
{
    char *rest = NULL, *word = strtok_r(line, " ", &rest); /* "ready" */

    for (size_t i = 0; i < TEST_SERVER_WORDS && word; i++) {
        word = strtok_r(NULL, " ", &rest);
        if (word)
            (void)snprintf(s->word[i], TEST_SERVER_WORD_MAX, "%s", word);
    }
}

bool test_server_open(struct test_server *s, const char *script,
                      const char *const *arguments)
{
    int orders[2] = { -1, -1 }, answers[2] = { -1, -1 };
    char line[2048];

    *s = (struct test_server){ .pid = -1, .script = script };
    if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
        return false;
    (void)fflush(stdout);
    s->pid = fork();
    if (s->pid == 0)
        run_script(script, arguments, orders[0], answers[1]);
    (void)close(orders[0]);
    (void)close(answers[1]);
    s->orders = fdopen(orders[1], "w");
    s->answers = fdopen(answers[0], "r");
    if (s->pid < 0 || !s->orders || !s->answers ||
        !take_answer(s, "ready", line, sizeof(line)))
        return false;
    take_words(s, line);
    return true;
}

bool test_server_order(struct test_server *s, const char *order)
{
    char line[2048];

    return s->orders && fprintf(s->orders, "%s\n", order) > 0 &&
           fflush(s->orders) == 0 && take_answer(s, "done", line, sizeof(line));
}

void test_server_close(struct test_server *s)
{
    if (s->orders)
        (void)fclose(s->orders);
    if (s->pid > 0)
        (void)waitpid(s->pid, NULL, 0);
    if (s->answers)
        (void)fclose(s->answers);
    *s = (struct test_server){ .pid = -1 };
}

const char *test_server_url(const char *variable)
{
    const char *url = getenv(variable);

    if (url && *url)
        return url;
    printf("Bail out! %s is not set; tests/run sets it\n", variable);
    exit(1);
}
