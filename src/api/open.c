#include <belay/belay.h>

#include <stdio.h>
#include <stdlib.h>

#include "api/handle.h"
#include "api/options.h"
#include "api/scheme.h"
#include "base/hash.h"
#include "policy/transition.h"
#include "store/schema.h"
#include "work/host_watch.h"

static belay_rc take_namespace(struct belay *b, const char *ns, struct belay_error *err)
{
    size_t len = strnlen(ns, sizeof(b->ns));

    if (len == sizeof(b->ns) || !namespace_is_valid(bytes_of(ns, len), false))
        return err_reason(err, BELAY_INVALID, "namespace",
                          "namespace: must be 1 to %d of a-z, 0-9, _ and -, beginning "
                          "with a letter or digit",
                          NAMESPACE_MAX);
    memcpy(b->ns, ns, len + 1);
    return BELAY_OK;
}

static belay_rc open_site(struct belay *b, enum belay_backend_tag backend,
                          struct belay_error *err)
{
    int64_t grace_ms = b->settings.value[SETTING_RECLAIM_GRACE];

    b->site.space = b->space;
    b->site.backend = backend;
    b->site.grace_ms = grace_ms == SETTING_UNSET ? RECLAIM_GRACE_MS : grace_ms;
    b->processes = (struct proc_site){ .space = b->space };
    belay_rc rc = lane_book_open(&b->site.lanes, err);
    return rc ? rc : proc_book_open(&b->processes.book, err);
}

/* --- the host --- */

/* "store-" and a hash of where the store is and of the namespace. */
static belay_rc name_fleet(struct belay *b, const struct scheme *scheme,
                           const struct url *url, struct belay_error *err)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    uint8_t digest[SHA256_LEN];
    char hex[SHA256_HEX_LEN + 1];
    belay_rc rc =
        scheme->place ? scheme->place(url, &b->settings, &text, err) : BELAY_OK;

    if (rc || text.len == 0)
        return rc;
    buf_append_char(&text, '\0');
    buf_append(&text, space_name(b->space));
    if (text.failed)
        return err_no_memory(err, "a handle");
    rc = sha256(buf_view(&text), digest, err);
    if (rc)
        return rc;
    hex_encode(bytes_of(digest, sizeof(digest)), hex);
    (void)snprintf(b->fleet, sizeof(b->fleet), "store-%.32s", hex);
    return BELAY_OK;
}

static belay_rc open_host(struct belay *b, const struct belay_options *options,
                          struct belay_error *err)
{
    const struct host_watch_options watch = { .fleet = b->fleet,
                                              .dir = options->fleet_dir,
                                              .binds =
                                                  options->host == BELAY_HOST_BOUND };

    if (options->host == BELAY_HOST_APART || b->fleet[0] == '\0')
        return BELAY_OK;
    belay_rc rc = host_watch_open(&b->host, b->space, b->site.grace_ms, &watch, err);
    b->site.host = b->processes.host = b->host;
    return rc;
}

static belay_rc check_host(const struct belay_options *options, struct belay_error *err)
{
    if (options->host >= BELAY_HOST_APART && options->host <= BELAY_HOST_BOUND)
        return BELAY_OK;
    (void)err_reason(err, BELAY_INVALID, "option",
                     "struct belay_options: host: must be one of enum belay_host");
    err_entity(err, bytes_str("host"));
    return BELAY_INVALID;
}

/* The driver, the store on it, and the space in that. */
static belay_rc open_store(struct belay *b, const struct scheme *scheme,
                           const struct url *url, enum handle_reach reach,
                           struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (reach == HANDLE_CAREFUL && scheme->look)
        rc = scheme->look(url, &b->config, err);
    if (rc == BELAY_OK)
        rc = scheme->open(&b->driver, url, &b->settings, &b->config, err);
    if (rc != BELAY_OK)
        return rc;

    const struct store_options options = {
        .schema = b->config.schema,
        .clock = b->config.clock,
        .random = b->config.random,
    };
    rc = store_open(&b->store, b->driver, &options, err);
    if (rc != BELAY_OK)
        return rc;
    rc = reach == HANDLE_NAMESPACE
             ? store_space(b->store, bytes_str(b->ns), &b->space, err)
             : store_system_space(b->store, &b->space, err);
    return rc ? rc : open_site(b, scheme->backend, err);
}

/* Everything is checked before the first driver is touched: a refused call leaves no
 * file behind. */
static belay_rc open_handle(struct belay *b, const char *text,
                            const struct belay_options *options,
                            enum handle_reach reach, struct belay_arena *a,
                            struct belay_error *err)
{
    const struct scheme *scheme;
    struct url url;

    belay_rc rc = settings_from_options(&b->settings, options, err);
    if (rc == BELAY_OK)
        rc = check_host(options, err);
    if (rc == BELAY_OK)
        rc = take_namespace(b, options->ns, err);
    if (rc == BELAY_OK)
        rc = url_parse(bytes_of(text, strnlen(text, URL_MAX + 1)), a, &url, err);
    if (rc == BELAY_OK)
        rc = scheme_find(&url, &scheme, err);
    if (rc == BELAY_OK)
        rc = scheme_options(scheme, &url, &b->settings, err);
    if (rc == BELAY_OK)
        rc = open_store(b, scheme, &url, reach, err);
    if (rc == BELAY_OK)
        rc = name_fleet(b, scheme, &url, err);
    return rc ? rc : open_host(b, options, err);
}

belay_rc belay_open(const char *url, const struct belay_options *options,
                    struct belay **out, struct belay_error *err)
{
    return handle_open(url, options, HANDLE_NAMESPACE, out, err);
}

belay_rc handle_open(const char *url, const struct belay_options *options,
                     enum handle_reach reach, struct belay **out,
                     struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    struct belay_options known;

    if (!url || !out)
        return err_set(err, BELAY_MISUSE, "belay_open: %s is NULL",
                       url ? "out" : "url");
    const char *fault = step_table_fault(); /* 0.1 ms: nothing runs on a broken table */
    if (fault)
        return err_reason(err, BELAY_CORRUPT, "transitions", "belay_open: %s", fault);
    struct belay *b = calloc(1, sizeof(*b));
    if (!b)
        return err_no_memory(err, "a handle");

    b->settings = settings_none();
    b->config.schema = &schema_belay;
    random_pool_init(&b->chance);
    b->config.random = random_pool_hook(&b->chance);
    belay_rc rc =
        options_read(options, &known, &b->config.clock, &b->config.random, err);
    if (rc == BELAY_OK)
        rc = open_handle(b, url, &known, reach, &arena, err);
    if (rc != BELAY_OK) {
        belay_close(b);
        return rc;
    }
    *out = b;
    return BELAY_OK;
}

void belay_close(struct belay *b)
{
    if (!b)
        return;
    host_watch_close(b->host); /* first: its thread uses the others */
    lane_book_close(b->site.lanes);
    proc_book_close(b->processes.book);
    store_close(b->store);
    driver_close(b->driver);
    random_pool_release(&b->chance);
    free(b);
}

const char *belay_namespace(const struct belay *b)
{
    return b->ns;
}

enum belay_durability belay_durability(struct belay *b)
{
    switch (driver_durability(b->driver)) {
    case DURABILITY_INLINE:
        return BELAY_DURABILITY_INLINE;
    case DURABILITY_DURABLE:
        return BELAY_DURABILITY_DURABLE;
    case DURABILITY_RELAXED:
        break;
    }
    return BELAY_DURABILITY_RELAXED;
}

const char *belay_durability_name(int durability)
{
    static const char *const names[] = {
        [BELAY_DURABILITY_INLINE] = "inline",
        [BELAY_DURABILITY_DURABLE] = "durable",
        [BELAY_DURABILITY_RELAXED] = "relaxed",
    };

    if (durability < 0 || (size_t)durability >= COUNT_OF(names))
        return "unknown";
    return names[durability];
}

const char *belay_version(void)
{
    return BELAY_VERSION;
}
