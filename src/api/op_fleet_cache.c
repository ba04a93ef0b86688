/* The cache of a fleet from the shell. */
#include <belay/cache.h>

#include <stdlib.h>

#include "api/op_fleet.h"

#define SHORT 4096

/* Opened as a member, or, to look at it alone, as an observer. */
static belay_rc cache_open(const struct op_call *call, bool is_member,
                           struct belay_fleet **out_f, struct belay_cache **out,
                           struct belay_error *err)
{
    struct belay_cache_options o = { .size = sizeof(o),
                                     .prefix = op_str(call, "prefix") };
    belay_rc rc = is_member ? op_fleet_join(call, "fleet", 0, out_f, err)
                            : op_fleet_observe(call, "fleet", out_f, err);

    return rc == BELAY_OK ? belay_cache_open(*out_f, &o, out, err) : rc;
}

static int set_key(json_t *row, struct bytes key)
{
    return bytes_is_utf8(key) && !memchr(key.ptr, 0, key.len)
               ? json_object_set_new(row, "key", op_text(key))
               : json_object_set_new(row, "key_base64", op_to_base64(key));
}

static int set_value(json_t *row, struct bytes value)
{
    bool is_text =
        bytes_is_utf8(value) && (value.len == 0 || !memchr(value.ptr, 0, value.len));

    return is_text ? json_object_set_new(row, "value", op_text(value))
                   : json_object_set_new(row, "value_base64", op_to_base64(value));
}

/* --- get --- */

/* Into memory as long as it needs; the caller's to free. */
static belay_rc get(struct belay_cache *c, struct bytes key, uint8_t **out,
                    struct belay_cache_got *got, struct belay_error *err)
{
    size_t room = SHORT;

    for (int turn = 0; turn < 100; turn++) {
        uint8_t *buf = malloc(room);
        if (!buf)
            return err_no_memory(err, "a value");
        belay_rc rc = belay_cache_get(c, key.ptr, key.len, buf, room, got, err);
        if (rc == BELAY_OK) {
            *out = buf;
            return BELAY_OK;
        }
        free(buf);
        if (rc != BELAY_OUT_OF_RANGE)
            return rc;
        room = (size_t)err->expected;
    }
    return err_set(err, BELAY_CONTENTION, "the value's length changes all the time");
}

static void freep(uint8_t **p)
{
    free(*p);
}

belay_rc op_cache_get(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    uint8_t *value CLEANUP(freep) = NULL;
    struct bytes key = op_get(call, "key")->text;
    struct belay_cache_got got;
    struct belay_cache *c;
    belay_rc rc = cache_open(call, false, &f, &c, err);

    if (rc == BELAY_OK)
        rc = get(c, key, &value, &got, err);
    if (rc != BELAY_OK)
        return rc;
    if (!got.is_hit)
        return err_set(err, BELAY_NOT_FOUND, "the cache has no such key");
    json_t *answer = json_object();
    int failed = set_key(answer, key);
    failed |= set_value(answer, bytes_of(value, got.len));
    failed |= op_set_i64(answer, "bytes", (int64_t)got.len);
    failed |= op_set_time(answer, "ttl_ms", got.ttl_ms > 0 ? got.ttl_ms : -1);
    failed |= op_set_i64(answer, "epoch", (int64_t)got.epoch);
    return op_finish(answer, failed, out, err);
}

/* --- put --- */

belay_rc op_cache_put(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    const struct op_value *ttl = op_get(call, "ttl");
    struct bytes key = op_get(call, "key")->text, value = op_get(call, "value")->text;
    struct belay_cache *c;
    uint64_t epoch = 0;
    belay_rc rc = cache_open(call, true, &f, &c, err);

    if (rc == BELAY_OK)
        rc = belay_cache_put(c, key.ptr, key.len, value.ptr, value.len,
                             ttl ? ttl->number : 0, &epoch, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    int failed = set_key(answer, key);
    failed |= op_set_i64(answer, "bytes", (int64_t)value.len);
    failed |= op_set_time(answer, "ttl_ms", ttl ? ttl->number : -1);
    failed |= op_set_i64(answer, "epoch", (int64_t)epoch);
    return op_finish(answer, failed, out, err);
}

/* --- rm, reset --- */

belay_rc op_cache_rm(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    struct bytes key = op_get(call, "key")->text;
    struct belay_cache *c;
    bool was = false;
    belay_rc rc = cache_open(call, true, &f, &c, err);

    if (rc == BELAY_OK)
        rc = belay_cache_delete(c, key.ptr, key.len, &was, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    int failed = set_key(answer, key);
    failed |= op_set_bool(answer, "removed", was);
    return op_finish(answer, failed, out, err);
}

belay_rc op_cache_reset(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    struct belay_cache *c;
    size_t n = 0;
    belay_rc rc = cache_open(call, true, &f, &c, err);

    if (rc == BELAY_OK)
        rc = belay_cache_reset(c, NULL, 0, &n, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    int failed = op_set_text(answer, "prefix", op_str(call, "prefix"));
    failed |= op_set_i64(answer, "removed", (int64_t)n);
    return op_finish(answer, failed, out, err);
}

/* --- ls --- */

static json_t *json_entry(const struct belay_cache_entry *e)
{
    size_t len = e->key_len < sizeof(e->key) ? e->key_len : sizeof(e->key) - 1;
    json_t *row = json_object();
    int failed = set_key(row, bytes_of(e->key, len));

    failed |= op_set_i64(row, "bytes", (int64_t)e->len);
    failed |= op_set_time(row, "ttl_ms", e->ttl_ms > 0 ? e->ttl_ms : -1);
    failed |= op_set_i64(row, "epoch", (int64_t)e->epoch);
    return op_whole(row, failed);
}

belay_rc op_cache_ls(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    size_t limit = (size_t)op_get(call, "limit")->number, found = 0;
    struct op_maker m = { .err = err };
    struct belay_cache *c;
    int64_t from = 0;
    belay_rc rc = op_cursor(call, &from, err);

    if (rc == BELAY_OK)
        rc = cache_open(call, false, &f, &c, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *items = json_array();
    uint64_t cursor = (uint64_t)from;
    int failed = 0;
    do {
        struct belay_cache_entry entry;
        size_t n = 0;
        rc = belay_cache_list(c, &cursor, &entry, 1, &n, err);
        if (rc == BELAY_OK && n > 0) {
            failed |= json_array_append_new(items, json_entry(&entry));
            found++;
        }
    } while (rc == BELAY_OK && !failed && cursor != 0 && found < limit);
    if (rc == BELAY_OK)
        return op_made_list(&m, items, failed, (int64_t)cursor, out);
    json_decref(items);
    return rc;
}
