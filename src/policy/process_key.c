/* What events, wakes and their keys are called. */
#include "policy/process_event.h"

static belay_rc hash_text(const struct buf *text, char out[SHA256_HEX_LEN + 1],
                          struct belay_error *err)
{
    uint8_t digest[SHA256_LEN];

    if (text->failed)
        return err_no_memory(err, "a hash");
    belay_rc rc = sha256(buf_view(text), digest, err);
    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), out);
    return rc;
}

belay_rc event_payload_hash(struct bytes type, const json_t *payload,
                            char out[SHA256_HEX_LEN + 1], struct belay_arena *a,
                            struct belay_error *err)
{
    struct buf text = buf_in(a);

    buf_append_char(&text, '[');
    json_append_string(&text, type);
    buf_append_char(&text, ',');
    belay_rc rc = json_write(payload, &text, err);
    buf_append_char(&text, ']');
    return rc ? rc : hash_text(&text, out, err);
}

belay_rc wake_id_make(struct scope target, struct bytes dedupe_key,
                      char out[WAKE_ID_LEN + 1], struct belay_arena *a,
                      struct belay_error *err)
{
    struct buf text = buf_in(a);
    char hash[SHA256_HEX_LEN + 1];
    struct bytes scope = { 0 };
    belay_rc rc = scope_text(target, a, &scope, err);

    if (rc != BELAY_OK)
        return rc;
    buf_append_char(&text, '[');
    json_append_string(&text, scope);
    buf_append_char(&text, ',');
    json_append_string(&text, dedupe_key);
    buf_append_char(&text, ']');
    rc = hash_text(&text, hash, err);
    if (rc != BELAY_OK)
        return rc;
    memcpy(out, "wake:", sizeof("wake:"));
    memcpy(out + WAKE_ID_LEN - SHA256_HEX_LEN, hash, sizeof(hash));
    return BELAY_OK;
}

static belay_rc take(const struct buf *text, struct bytes *out, struct belay_error *err)
{
    if (text->failed)
        return err_no_memory(err, "a key");
    *out = buf_view(text);
    return BELAY_OK;
}

static struct buf begin(struct bytes process_id, struct belay_arena *a)
{
    struct buf text = buf_in(a);

    buf_append_str(&text, "process:");
    buf_append(&text, process_id);
    return text;
}

belay_rc wake_source_key(struct bytes process_id, int64_t sequence,
                         struct belay_arena *a, struct bytes *out,
                         struct belay_error *err)
{
    struct buf text = begin(process_id, a);

    buf_append_str(&text, ":event:");
    buf_append_i64(&text, sequence);
    buf_append_str(&text, ":wake");
    return take(&text, out, err);
}

belay_rc cancel_replay_key(struct bytes process_id, const char *payload_hash,
                           struct belay_arena *a, struct bytes *out,
                           struct belay_error *err)
{
    struct buf text = begin(process_id, a);

    buf_append_str(&text, ":cancel_requested:");
    buf_append_str(&text, payload_hash);
    return take(&text, out, err);
}

belay_rc cancel_payload(struct bytes reason, struct belay_arena *a, struct bytes *out,
                        struct belay_error *err)
{
    struct buf text = buf_in(a);

    buf_append_str(&text, "{\"reason\":");
    if (reason.ptr)
        json_append_string(&text, reason);
    else
        buf_append_str(&text, "null");
    buf_append_char(&text, '}');
    return take(&text, out, err);
}

belay_rc complete_replay_key(struct bytes process_id, enum process_state state,
                             struct belay_arena *a, struct bytes *out,
                             struct belay_error *err)
{
    struct buf text = begin(process_id, a);

    buf_append_str(&text, ":terminal:");
    buf_append_str(&text, process_state_event(state));
    return take(&text, out, err);
}

belay_rc complete_payload(const struct await_output *output, struct belay_arena *a,
                          struct bytes *out, struct belay_error *err)
{
    struct buf text = buf_in(a);

    buf_append_str(&text, "{\"await_output\":");
    belay_rc rc = await_output_write(output, &text, err);
    buf_append_char(&text, '}');
    return rc ? rc : take(&text, out, err);
}
