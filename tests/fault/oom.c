#include "oom.h"

#include <jansson.h>
#include <openssl/crypto.h>
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

bool oom_hook_libraries(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
    return CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free) == 1;
}
