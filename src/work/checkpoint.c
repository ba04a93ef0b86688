#include "work/checkpoint.h"

#include "base/json.h"

/* clang-format off */
static const struct {
    const char *name; /* in messages */
    unsigned column;  /* of the session's row */
    int32_t kind;
} parts[PARTS] = {
    [PART_TOOL]      = { "tool_state",      SESSION_TOOL_REF,      BELAY_BLOB_TOOL_STATE },
    [PART_PLUGIN]    = { "plugin_snapshot", SESSION_PLUGIN_REF,    BELAY_BLOB_PLUGIN },
    [PART_EXECUTION] = { "execution_state", SESSION_EXECUTION_REF, BELAY_BLOB_EXECUTION },
    [PART_MANIFEST]  = { "manifest",        SESSION_CHECKPOINT,    BELAY_BLOB_MANIFEST },
};
/* clang-format on */

/* --- preparing --- */

/* A body of more than one chunk goes into the store ahead of the commit (S3), straight
 * from the caller's memory. */
static belay_rc upload_part(struct space *sp, struct checkpoint_part *part,
                            struct bytes body, int32_t kind, bool compress,
                            struct belay_error *err)
{
    struct blob_writer *w = NULL;
    struct blob_info info;
    belay_rc rc = blob_writer_open(&w, sp, compress, NULL, err);

    if (rc == BELAY_OK)
        rc = blob_write(w, body, err);
    if (rc == BELAY_OK)
        rc = blob_finish(w, blob_kind_descriptor(kind), NULL, &info, err);
    blob_writer_close(w);
    if (rc == BELAY_OK)
        memcpy(part->ref, info.sha256, sizeof(part->ref));
    return rc;
}

static belay_rc bring_part(struct space *sp, struct checkpoint_part *part,
                           struct bytes body, int32_t kind, int32_t profile,
                           struct belay_arena *a, struct belay_error *err)
{
    bool compress = profile_compresses(profile, kind, body.len);

    part->named = true;
    if (body.len > CHUNK_MAX)
        return upload_part(sp, part, body, kind, compress, err);
    belay_rc rc = blob_prepare(&part->piece, sp, body, blob_kind_descriptor(kind),
                               compress, a, err);
    part->brought = rc == BELAY_OK;
    if (part->brought)
        memcpy(part->ref, part->piece.sha256, sizeof(part->ref));
    return rc;
}

static belay_rc unknown_ref(struct belay_error *err, const char *part, struct bytes ref,
                            const char *why)
{
    (void)err_reason(err, BELAY_INVALID, "unknown_ref", "checkpoint: %s: %s", part,
                     why);
    err_entity(err, ref);
    return BELAY_INVALID;
}

static belay_rc prepare_part(struct space *sp, const struct belay_part *in, size_t i,
                             int32_t profile, struct belay_arena *a,
                             struct checkpoint_part *out, struct belay_error *err)
{
    if (in->body)
        return bring_part(sp, out, bytes_of(in->body, in->len), parts[i].kind, profile,
                          a, err);
    if (!in->ref)
        return BELAY_OK;
    struct bytes ref = bytes_str(in->ref);
    if (!blob_is_name(ref))
        return unknown_ref(err, parts[i].name, ref,
                           "the ref is no sha256 in lower-case hex");
    out->named = true;
    memcpy(out->ref, ref.ptr, sizeof(out->ref));
    return BELAY_OK;
}

static int set_ref(json_t *object, const char *key, const struct checkpoint_part *part)
{
    return part->named ? json_object_set_new(object, key, json_string(part->ref)) : 0;
}

static belay_rc too_large(struct belay_error *err, size_t len)
{
    (void)err_reason(err, BELAY_INVALID, "too_large",
                     "checkpoint: turn_state: the manifest would have %zu bytes", len);
    err_numbers(err, (int64_t)CHUNK_MAX, (int64_t)len);
    return BELAY_INVALID;
}

/* The manifest as canonical JSON, in the arena. */
static belay_rc write_manifest(const struct belay_checkpoint *in, json_t *turn_state,
                               struct belay_arena *a, struct checkpoint_plan *plan,
                               struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *object = json_object();
    CLEANUP(buf_release) struct buf text = { 0 };
    int failed = json_object_set(object, "turn_state", turn_state);

    failed |= set_ref(object, "tool_state_ref", &plan->part[PART_TOOL]);
    failed |= set_ref(object, "plugin_snapshot_ref", &plan->part[PART_PLUGIN]);
    failed |= set_ref(object, "execution_state_ref", &plan->part[PART_EXECUTION]);
    if (in->plugin_snapshot_revision != BELAY_NONE)
        failed |= json_object_set_new(object, "plugin_snapshot_revision",
                                      json_integer(in->plugin_snapshot_revision));
    if (failed)
        return err_no_memory(err, "a manifest");
    belay_rc rc = json_write(object, &text, err);
    if (rc)
        return rc;
    if (text.len > CHUNK_MAX)
        return too_large(err, text.len);
    return arena_copy(a, buf_view(&text), &plan->manifest)
               ? BELAY_OK
               : err_no_memory(err, "a manifest");
}

static belay_rc check_input(const struct belay_checkpoint *in, int32_t profile,
                            struct belay_error *err)
{
    if (profile < BELAY_PROFILE_DEFAULT || profile > BELAY_COMPACT)
        return err_reason(err, BELAY_INVALID, "option", "checkpoint: no profile %d",
                          (int)profile);
    if (in->plugin_snapshot_revision < BELAY_NONE)
        return err_reason(err, BELAY_INVALID, "plugin_snapshot_revision",
                          "checkpoint: plugin_snapshot_revision: %lld",
                          (long long)in->plugin_snapshot_revision);
    return BELAY_OK;
}

static belay_rc read_turn_state(const char *text, json_t **out, struct belay_error *err)
{
    struct belay_error why = { .code = 0 };
    belay_rc rc = json_read(bytes_str(text ? text : "{}"), CHUNK_MAX, out, &why);

    if (rc)
        (void)err_reason(err, rc, why.reason[0] ? why.reason : "turn_state",
                         "checkpoint: turn_state: %s", why.message);
    return rc;
}

belay_rc checkpoint_prepare(struct space *sp, const struct belay_checkpoint *in,
                            int32_t profile, struct belay_arena *a,
                            struct checkpoint_plan *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *turn_state = NULL;
    const struct belay_part *given[] = {
        [PART_TOOL] = &in->tool_state,
        [PART_PLUGIN] = &in->plugin_snapshot,
        [PART_EXECUTION] = &in->execution_state,
    };
    struct checkpoint_plan plan = { 0 };

    belay_rc rc = check_input(in, profile, err);
    if (rc == BELAY_OK)
        rc = read_turn_state(in->turn_state, &turn_state, err);
    profile = profile_resolve(sp, profile);
    for (size_t i = 0; i < COUNT_OF(given) && rc == BELAY_OK; i++)
        rc = prepare_part(sp, given[i], i, profile, a, &plan.part[i], err);
    if (rc == BELAY_OK)
        rc = write_manifest(in, turn_state, a, &plan, err);
    if (rc == BELAY_OK)
        rc = bring_part(sp, &plan.part[PART_MANIFEST], plan.manifest,
                        BELAY_BLOB_MANIFEST, profile, a, err);
    if (rc == BELAY_OK)
        *out = plan;
    return rc;
}

/* --- in the commit --- */

/* Whether an earlier part is the same blob, and is written by this commit if it has to
 * be. */
static bool is_brought(const struct checkpoint_plan *plan, const char *ref)
{
    for (size_t i = 0; i < PARTS; i++) {
        if (plan->part[i].brought && strcmp(plan->part[i].ref, ref) == 0)
            return true;
    }
    return false;
}

/* All rows in one round trip: what follows finds them read. */
static belay_rc read_parts(struct txn *t, const struct checkpoint_plan *plan,
                           const struct row *out[PARTS])
{
    struct row_want wants[PARTS];
    struct value keys[PARTS];
    const struct row *rows[PARTS];
    size_t n = 0, at[PARTS];

    for (size_t i = 0; i < PARTS; i++) {
        out[i] = NULL;
        if (!plan->part[i].named)
            continue;
        keys[n] = value_str(plan->part[i].ref);
        wants[n] = (struct row_want){ &row_blob, &keys[n] };
        at[n++] = i;
    }
    belay_rc rc = txn_get_many(t, wants, n, rows);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        out[at[i]] = rows[i];
    return rc;
}

belay_rc checkpoint_check(struct txn *t, const struct checkpoint_plan *plan)
{
    const struct row *rows[PARTS];
    belay_rc rc = read_parts(t, plan, rows);

    for (size_t i = 0; i < PARTS && rc == BELAY_OK; i++) {
        const struct checkpoint_part *part = &plan->part[i];
        if (part->named && !rows[i] && !is_brought(plan, part->ref))
            rc = unknown_ref(txn_error(t), parts[i].name, bytes_str(part->ref),
                             "there is no blob of that name"); /* S3 */
    }
    return rc;
}

static bool names_already(const struct row *old, size_t i,
                          const struct checkpoint_part *part)
{
    return old && bytes_eq(row_bytes(old, parts[i].column), bytes_str(part->ref));
}

/* Equal parts are one blob: it is written, or touched, once. */
static bool is_repeated(const struct checkpoint_plan *plan, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (plan->part[j].brought == plan->part[i].brought &&
            strcmp(plan->part[j].ref, plan->part[i].ref) == 0)
            return true;
    }
    return false;
}

belay_rc checkpoint_apply(struct txn *t, const struct checkpoint_plan *plan,
                          const struct row *old)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < PARTS && rc == BELAY_OK; i++) {
        const struct checkpoint_part *part = &plan->part[i];
        bool found = true;
        if (!part->named || is_repeated(plan, i))
            continue;
        if (part->brought)
            rc = blob_put_in(t, &part->piece, NULL);
        else if (!is_brought(plan, part->ref) && !names_already(old, i, part))
            rc = blob_touch(t, part->ref, &found); /* S6 */
        if (rc == BELAY_OK && !found)
            rc = unknown_ref(txn_error(t), parts[i].name, bytes_str(part->ref),
                             "there is no blob of that name");
    }
    return rc;
}

size_t checkpoint_changes(const struct checkpoint_plan *plan, struct change out[PARTS])
{
    for (size_t i = 0; i < PARTS; i++) {
        const struct checkpoint_part *part = &plan->part[i];
        out[i] = (struct change){ parts[i].column,
                                  part->named ? value_str(part->ref) : value_null() };
    }
    return PARTS;
}
