/* belay - the program. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/job_spawn.h"

static const char *environment(const char *name)
{
    return getenv(name);
}

/* A standard descriptor that is closed would be given to the first file that is opened,
 * and answers would be written into it.  What is put there instead cannot be used. */
static void fill_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        int null = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
        if (null != fd) /* lower ones are taken: it can only have failed */
            abort();
    }
}

int main(int argc, char **argv)
{
    const struct cli cli = {
        .table = &op_table_belay,
        .env = environment,
        .in = STDIN_FILENO,
        .out = STDOUT_FILENO,
        .err = STDERR_FILENO,
    };

    if (argc > 1 && strcmp(argv[1], JOB_WORD) == 0) /* a worker's job begins here */
        return job_become(argc - 2, argv + 2);
    fill_descriptors();
    (void)signal(SIGPIPE,
                 SIG_IGN); /* a reader that went away is told like any failure */
    return cli_run(&cli, argv + (argc > 0), argc > 0 ? (size_t)argc - 1 : 0);
}
