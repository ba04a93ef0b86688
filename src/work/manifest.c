/* Kinds and profiles of blobs; manifests, the refs of frames and checkpoints, read
 * back. */
#include "base/json.h"
#include "work/checkpoint.h"

/* Loads that met a commit each time. */
#define LOAD_TRIES 8

/* --- kinds and profiles --- */

/* clang-format off */
static const struct {
    const char *name, *descriptor;
} kinds[] = {
    [BELAY_BLOB_GENERIC] = {
        "generic_blob", "{\"hints\":[],\"kind\":\"generic_blob\"}" },
    [BELAY_BLOB_MANIFEST] = {
        "checkpoint_manifest",
        "{\"hints\":[\"compressible\"],\"kind\":\"checkpoint_manifest\"}" },
    [BELAY_BLOB_TOOL_STATE] = {
        "tool_state",
        "{\"hints\":[\"compressible\",\"large_payload\"],\"kind\":\"tool_state\"}" },
    [BELAY_BLOB_PLUGIN] = {
        "plugin_session_snapshot",
        "{\"hints\":[\"compressible\",\"large_payload\"],"
        "\"kind\":\"plugin_session_snapshot\"}" },
    [BELAY_BLOB_EXECUTION] = {
        "execution_state_snapshot",
        "{\"hints\":[\"compressible\",\"large_payload\"],"
        "\"kind\":\"execution_state_snapshot\"}" },
    [BELAY_BLOB_MODULE] = {
        "module",
        "{\"hints\":[\"compressible\",\"large_payload\"],\"kind\":\"module\"}" },
};
/* clang-format on */

static size_t kind_row(int32_t kind)
{
    bool known = kind >= 0 && (size_t)kind < COUNT_OF(kinds);

    return known ? (size_t)kind : BELAY_BLOB_GENERIC;
}

struct bytes blob_kind_descriptor(int32_t kind)
{
    return bytes_str(kinds[kind_row(kind)].descriptor);
}

const char *blob_kind_name(int32_t kind)
{
    return kinds[kind_row(kind)].name;
}

bool blob_kind_parse(struct bytes name, int32_t *out)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (bytes_eq(name, bytes_str(kinds[i].name))) {
            *out = (int32_t)i;
            return true;
        }
    }
    return false;
}

bool profile_compresses(int32_t profile, int32_t kind, size_t len)
{
    static const size_t from[] = {
        [BELAY_PROFILE_DEFAULT] = SIZE_MAX,
        [BELAY_LOW_LATENCY] = SIZE_MAX,
        [BELAY_BALANCED] = 4096,
        [BELAY_COMPACT] = 1024,
    };

    if (profile < 0 || (size_t)profile >= COUNT_OF(from))
        return false;
    return kind_row(kind) != BELAY_BLOB_GENERIC && len >= from[profile];
}

int32_t profile_resolve(struct space *sp, int32_t profile)
{
    if (profile != BELAY_PROFILE_DEFAULT)
        return profile;
    struct driver *d = store_driver(space_store(sp));
    return driver_durability(d) == DURABILITY_INLINE ? BELAY_LOW_LATENCY
                                                     : BELAY_BALANCED;
}

/* --- manifests --- */

static belay_rc no_manifest(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_CORRUPT, "corrupt_manifest", "manifest: %s", why);
}

/* A string member of an object as a blob's name, in the arena; absent or null leaves
 * *out empty.  False in *out_ok when it is something else. */
static belay_rc get_ref(const json_t *object, const char *key, struct belay_arena *a,
                        struct bytes *out, bool *out_ok, struct belay_error *err)
{
    const json_t *value = json_object_get(object, key);

    *out = bytes_of(NULL, 0);
    *out_ok = true;
    if (!value || json_is_null(value))
        return BELAY_OK;
    struct bytes text = bytes_of(json_string_value(value), json_string_length(value));
    *out_ok = json_is_string(value) && blob_is_name(text);
    if (!*out_ok)
        return BELAY_OK;
    return arena_copy(a, text, out) ? BELAY_OK : err_no_memory(err, "a ref");
}

static belay_rc get_turn_state(const json_t *object, struct belay_arena *a,
                               struct bytes *out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    const json_t *value = json_object_get(object, "turn_state");
    belay_rc rc = BELAY_OK;

    if (value)
        rc = json_write(value, &text, err);
    else
        buf_append_str(&text, "{}");
    if (rc)
        return rc;
    bool kept = !text.failed && arena_copy(a, buf_view(&text), out);
    return kept ? BELAY_OK : err_no_memory(err, "a turn state");
}

static bool get_revision(const json_t *object, int64_t *out)
{
    const json_t *value = json_object_get(object, "plugin_snapshot_revision");

    *out = BELAY_NONE;
    if (!value || json_is_null(value))
        return true;
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

static belay_rc take_manifest(const json_t *object, struct belay_arena *a,
                              struct manifest *out, struct belay_error *err)
{
    static const char *const keys[] = {
        [PART_TOOL] = "tool_state_ref",
        [PART_PLUGIN] = "plugin_snapshot_ref",
        [PART_EXECUTION] = "execution_state_ref",
    };

    if (!json_is_object(object))
        return no_manifest(err, "it is no JSON object");
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        bool ok = true;
        belay_rc rc = get_ref(object, keys[i], a, &out->ref[i], &ok, err);
        if (rc)
            return rc;
        if (!ok)
            return no_manifest(err, "a ref of it is no sha256");
    }
    if (!get_revision(object, &out->plugin_revision))
        return no_manifest(err, "its plugin_snapshot_revision is no count");
    return get_turn_state(object, a, &out->turn_state, err);
}

belay_rc manifest_parse(struct bytes text, struct belay_arena *a, struct manifest *out,
                        struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *object = NULL;
    struct manifest m = { .plugin_revision = BELAY_NONE };
    belay_rc rc = json_read(text, text.len, &object, err);

    if (rc == BELAY_INVALID)
        return no_manifest(err, "it is no JSON");
    if (rc == BELAY_OK)
        rc = take_manifest(object, a, &m, err);
    if (rc)
        return rc;
    if (!arena_copy(a, text, &m.text))
        return err_no_memory(err, "a manifest");
    *out = m;
    return BELAY_OK;
}

belay_rc manifest_load(struct space *sp, const char *ref, struct belay_arena *a,
                       struct manifest *out, struct belay_error *err)
{
    struct bytes text;
    belay_rc rc = blob_load(sp, ref, CHUNK_MAX, a, &text, err);

    if (rc == BELAY_INVALID)
        return no_manifest(err, "it is larger than any");
    return rc ? rc : manifest_parse(text, a, out, err);
}

/* --- frames --- */

static belay_rc no_frames(struct belay_error *err, const char *why)
{
    return err_reason(err, BELAY_CORRUPT, "corrupt_frames", "agent frames: %s", why);
}

static belay_rc take_frames(const json_t *array, struct belay_arena *a,
                            const char *const **out, size_t *out_n,
                            struct belay_error *err)
{
    size_t n = 0;

    if (!json_is_array(array))
        return no_frames(err, "they are no JSON array");
    const char **refs = arena_zalloc(a, json_array_size(array), sizeof(*refs));
    if (!refs)
        return err_no_memory(err, "the refs of frames");
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *frame = json_array_get(array, i);
        struct bytes ref;
        bool ok = true;
        if (!json_is_object(frame))
            return no_frames(err, "one is no JSON object");
        belay_rc rc = get_ref(frame, "execution_state_ref", a, &ref, &ok, err);
        if (rc)
            return rc;
        if (!ok)
            return no_frames(err, "an execution_state_ref is no sha256");
        if (ref.len > 0)
            refs[n++] = (const char *)ref.ptr;
    }
    *out = refs;
    *out_n = n;
    return BELAY_OK;
}

belay_rc frames_refs(struct bytes frames, struct belay_arena *a,
                     const char *const **out, size_t *out_n, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *array = NULL;
    belay_rc rc = json_read(frames, frames.len, &array, err);

    if (rc == BELAY_INVALID)
        return no_frames(err, "they are no JSON");
    return rc ? rc : take_frames(array, a, out, out_n, err);
}

/* --- checkpoints --- */

struct loading {
    const char *session;
    struct bytes ref[PARTS]; /* the head's manifest, and what that names */
    bool moved;              /* the head names another one by now */
};

static belay_rc no_checkpoint(struct txn *t, const struct loading *l,
                              const char *reason, const char *why)
{
    belay_rc rc =
        txn_fail(t, BELAY_NOT_FOUND, reason, "session %s: %s", l->session, why);

    err_entity(txn_error(t), bytes_str(l->session));
    return rc;
}

static belay_rc check_session(struct txn *t, const struct loading *l,
                              const struct row *row)
{
    if (!row)
        return no_checkpoint(t, l, "", "there is none");
    if (!bytes_eq(row_bytes(row, SESSION_STATE), bytes_str(SESSION_ACTIVE)))
        return no_checkpoint(t, l, SESSION_DELETED, "it was deleted");
    return BELAY_OK;
}

static belay_rc ref_body(struct txn *t, void *arg)
{
    struct loading *l = arg;
    struct value key = value_str(l->session);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_session, &key, &row);
    if (rc == BELAY_OK)
        rc = check_session(t, l, row);
    if (rc)
        return rc;
    struct bytes ref = row_bytes(row, SESSION_CHECKPOINT);
    if (ref.len == 0)
        return no_checkpoint(t, l, "", "it has no checkpoint");
    return arena_copy(txn_arena(t), ref, &l->ref[PART_MANIFEST])
               ? BELAY_OK
               : err_no_memory(txn_error(t), "a checkpoint");
}

static belay_rc missing_blob(struct txn *t, const struct loading *l, const char *what,
                             struct bytes ref)
{
    belay_rc rc =
        txn_fail(t, BELAY_CORRUPT, "missing_blob",
                 "session %s: the %s of its checkpoint is missing", l->session, what);

    err_entity(txn_error(t), ref);
    return rc;
}

/* Whether everything that the manifest names is there, while the head still names the
 * manifest. */
static belay_rc parts_body(struct txn *t, void *arg)
{
    static const char *const names[PARTS] = { "tool_state", "plugin_snapshot",
                                              "execution_state", "manifest" };
    struct loading *l = arg;
    struct value session = value_str(l->session), keys[PARTS];
    struct row_want wants[PARTS + 1] = { { &row_session, &session } };
    const struct row *rows[PARTS + 1];
    size_t n = 1, part[PARTS + 1];

    for (size_t i = 0; i < PARTS; i++) {
        if (l->ref[i].len == 0)
            continue;
        keys[i] = value_text(l->ref[i]);
        wants[n] = (struct row_want){ &row_blob, &keys[i] };
        part[n++] = i;
    }
    belay_rc rc = txn_get_many(t, wants, n, rows);
    if (rc == BELAY_OK)
        rc = check_session(t, l, rows[0]);
    if (rc)
        return rc;
    l->moved = !bytes_eq(row_bytes(rows[0], SESSION_CHECKPOINT), l->ref[PART_MANIFEST]);
    for (size_t i = 1; i < n && !l->moved; i++) {
        if (!rows[i])
            return missing_blob(t, l, names[part[i]], l->ref[part[i]]);
    }
    return BELAY_OK;
}

/* One try; *again: a commit came between. */
static belay_rc load_once(struct space *sp, struct loading *l, struct belay_arena *a,
                          struct manifest *m, bool *again, struct belay_error *err)
{
    static const struct txn_options options = { .read_only = true };

    *m = (struct manifest){ .plugin_revision = BELAY_NONE };
    belay_rc rc = txn_run(sp, ref_body, l, &options, a, err);
    if (rc)
        return rc;
    rc = manifest_load(sp, (const char *)l->ref[PART_MANIFEST].ptr, a, m, err);
    if (rc && rc != BELAY_NOT_FOUND)
        return rc;
    bool missing = rc == BELAY_NOT_FOUND;
    memcpy(l->ref, m->ref, sizeof(m->ref));
    rc = txn_run(sp, parts_body, l, &options, a, err);
    *again = l->moved || missing;
    return rc;
}

static const char *text_of(struct bytes b)
{
    return b.len > 0 ? (const char *)b.ptr : NULL;
}

belay_rc checkpoint_load(struct space *sp, const char *session_id,
                         struct belay_arena *a, struct belay_checkpoint_info *out,
                         struct belay_error *err)
{
    struct loading l = { .session = session_id };
    struct manifest m;
    bool again = true;

    for (int i = 0; i < LOAD_TRIES && again; i++) {
        belay_rc rc = load_once(sp, &l, a, &m, &again, err);
        if (rc)
            return rc;
    }
    if (again)
        return err_set(err, BELAY_CONTENTION,
                       "session %s: its checkpoint changed %d times while it was read",
                       session_id, LOAD_TRIES);
    *out = (struct belay_checkpoint_info){
        .ref = text_of(l.ref[PART_MANIFEST]),
        .manifest = text_of(m.text),
        .turn_state = text_of(m.turn_state),
        .tool_state_ref = text_of(m.ref[PART_TOOL]),
        .plugin_snapshot_ref = text_of(m.ref[PART_PLUGIN]),
        .execution_state_ref = text_of(m.ref[PART_EXECUTION]),
        .plugin_snapshot_revision = m.plugin_revision,
    };
    return BELAY_OK;
}
