#include "oom.h"

#include <jansson.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mman.h>

/* One thread allocates while armed, so plain state is enough. */
static struct {
    unsigned long left; /* 0: not armed */
    bool for_ever, hit;
} oom;

void oom_arm(unsigned long n, bool for_ever)
{
    oom.left = n;
    oom.for_ever = for_ever;
    oom.hit = false;
}

bool oom_disarm(void)
{
    oom.left = 0;
    return oom.hit;
}

static bool fails(void)
{
    if (oom.left == 0)
        return false;
    if (oom.left > 1) {
        oom.left--;
        return false;
    }
    oom.hit = true;
    if (!oom.for_ever)
        oom.left = 0;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    return fails() ? NULL : __real_realloc(ptr, size);
}

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
    return fails() ? MAP_FAILED : __real_mmap(at, len, prot, flags, fd, off);
}

static void *ssl_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return __wrap_malloc(n);
}

static void *ssl_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return __wrap_realloc(p, n);
}

static void ssl_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    free(p);
}

static void *lite_malloc(int n)
{
    return __wrap_malloc((size_t)n);
}

static void *lite_realloc(void *p, int n)
{
    return __wrap_realloc(p, (size_t)n);
}

static int lite_size(void *p)
{
    return (int)malloc_usable_size(p);
}

static int lite_round(int n)
{
    return (n + 7) & ~7;
}

static int lite_init(void *arg)
{
    (void)arg;
    return SQLITE_OK;
}

static void lite_shutdown(void *arg)
{
    (void)arg;
}

static bool hook_sqlite(void)
{
    static const sqlite3_mem_methods methods = { lite_malloc,   free,
                                                 lite_realloc,  lite_size,
                                                 lite_round,    lite_init,
                                                 lite_shutdown, NULL };

    /* Without a lookaside buffer every allocation comes by here. */
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK &&
           sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK;
}

bool oom_hook_libraries(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
    if (!hook_sqlite())
        return false;
    return CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free) == 1;
}
