/* Tags changed: the row, and the indexes they are found by. */
#include "base/json.h"
#include "work/exec_submit.h"

struct tagging {
    struct bytes id;
    const struct belay_tag *tags;
    size_t n_tags;
};

/* Like those of a submission; one without a value is removed. */
static belay_rc check_tags(const struct belay_tag *tags, size_t n,
                           struct belay_error *err)
{
    struct belay_tag named[TAGS_PER_EXECUTION], sorted[TAGS_PER_EXECUTION];

    if (n > TAGS_PER_EXECUTION)
        return err_reason(err, BELAY_INVALID, "tag", "tags: %zu, at most %d at once", n,
                          TAGS_PER_EXECUTION);
    for (size_t i = 0; i < n; i++)
        named[i] =
            (struct belay_tag){ tags[i].key, tags[i].value ? tags[i].value : "" };
    return exec_tags_sort(named, n, sorted, err);
}

static belay_rc move_tag(struct txn *t, const struct exec *e, const char *key,
                         const char *value, bool enter)
{
    const struct belay_tag tag = { key, value };
    int64_t rank = exec_i64(e, EXEC_CREATED_AT_MS, 0);
    struct bytes index;

    if (!exec_tag_index(&tag, txn_arena(t), &index))
        return err_no_memory(txn_error(t), "an index");
    return enter ? txn_rank_add(t, index, rank, e->id)
                 : txn_rank_remove(t, index, rank, e->id);
}

/* Leaves the indexes alone in which nothing changes. */
static belay_rc move_tags(struct txn *t, const struct exec *e, const json_t *from,
                          const json_t *to, bool enter)
{
    const char *key;
    json_t *value;
    belay_rc rc = BELAY_OK;

    json_object_foreach((json_t *)from, key, value)
    {
        const json_t *other = json_object_get(to, key);
        if (rc == BELAY_OK && !(other && json_equal(value, other)))
            rc = move_tag(t, e, key, json_string_value(value), enter);
    }
    return rc;
}

static belay_rc tags_object(struct txn *t, const struct row *spec, json_t **out)
{
    const struct belay_tag *tags;
    size_t n = 0;
    belay_rc rc = exec_tags_of(t, spec, &tags, &n);

    if (rc)
        return rc;
    *out = json_object();
    for (size_t i = 0; i < n && *out; i++) {
        if (json_object_set_new(*out, tags[i].key, json_string(tags[i].value)))
            return err_no_memory(txn_error(t), "tags");
    }
    return *out ? BELAY_OK : err_no_memory(txn_error(t), "tags");
}

static belay_rc merge_tags(struct txn *t, const struct tagging *c, json_t *tags)
{
    for (size_t i = 0; i < c->n_tags; i++) {
        const struct belay_tag *tag = &c->tags[i];
        if (!tag->value)
            (void)json_object_del(tags, tag->key);
        else if (json_object_set_new(tags, tag->key, json_string(tag->value)))
            return err_no_memory(txn_error(t), "tags");
    }
    if (json_object_size(tags) > TAGS_PER_EXECUTION)
        return txn_fail(t, BELAY_INVALID, "tag", "tags: %zu, at most %d are kept",
                        json_object_size(tags), TAGS_PER_EXECUTION);
    return BELAY_OK;
}

static belay_rc put_tags(struct txn *t, const struct tagging *c, const json_t *tags)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct value key = value_text(c->id);
    struct change change = { SPEC_TAGS, value_null() };
    struct bytes copy;

    if (json_object_size(tags) > 0) {
        belay_rc rc = json_write(tags, &text, txn_error(t));
        if (rc)
            return rc;
        if (!arena_copy(txn_arena(t), buf_view(&text), &copy))
            return err_no_memory(txn_error(t), "tags");
        change.value = value_json(copy);
    }
    return txn_put(t, &row_execution_spec, &key, &change, 1);
}

static belay_rc tag_body(struct txn *t, void *arg)
{
    const struct tagging *c = arg;
    CLEANUP(json_decrefp) json_t *before = NULL;
    CLEANUP(json_decrefp) json_t *after = NULL;
    struct value key = value_text(c->id);
    const struct row_want wants[] = { { &row_execution, &key },
                                      { &row_execution_spec, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct exec e;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = exec_get(t, c->id, &e);
    if (rc == BELAY_OK && !rows[1])
        rc = exec_missing(t, bytes_str("execution_spec"), c->id);
    if (rc == BELAY_OK)
        rc = tags_object(t, rows[1], &before);
    if (rc == BELAY_OK)
        rc = tags_object(t, rows[1], &after);
    if (rc == BELAY_OK)
        rc = merge_tags(t, c, after);
    if (rc == BELAY_OK)
        rc = move_tags(t, &e, before, after, false);
    if (rc == BELAY_OK)
        rc = move_tags(t, &e, after, before, true);
    if (rc || json_equal(before, after))
        return rc;
    return put_tags(t, c, after);
}

belay_rc exec_tag(const struct exec_site *site, const char *execution_id,
                  const struct belay_tag *tags, size_t n, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct tagging c = { .id = bytes_str(execution_id), .tags = tags, .n_tags = n };
    belay_rc rc = exec_check_id(execution_id, err);

    if (rc == BELAY_OK)
        rc = check_tags(tags, n, err);
    return rc ? rc : txn_run(site->space, tag_body, &c, NULL, &arena, err);
}
