#include "store/dump.h"

#include <inttypes.h>

#include "base/hash.h"

/* buf_append_escaped leaves quotes alone; between quotes they must not end the text.
 * Cutting there is safe: no byte of a longer UTF-8 sequence looks like a quote. */
static void append_quoted(struct buf *out, struct bytes text)
{
    buf_append_char(out, '"');
    while (text.len > 0) {
        const uint8_t *quote = memchr(text.ptr, '"', text.len);
        size_t len = quote ? (size_t)(quote - text.ptr) : text.len;

        buf_append_escaped(out, bytes_of(text.ptr, len));
        if (!quote)
            break;
        buf_append_str(out, "\\\"");
        text = bytes_of(quote + 1, text.len - len - 1);
    }
    buf_append_char(out, '"');
}

static void append_value(struct buf *out, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        buf_append_str(out, "null");
        break;
    case VALUE_I64:
        buf_append_i64(out, v->i);
        break;
    case VALUE_TEXT:
    case VALUE_BYTES:
    case VALUE_JSON:
        append_quoted(out, v->b);
        break;
    }
}

static void append_row(struct buf *out, const struct row *row)
{
    buf_printf(out, "row %s ver=%" PRId64, row->type->name, row->ver);
    for (unsigned i = 0; i < row->type->n_columns; i++) {
        buf_printf(out, " %s=", row->type->columns[i].name);
        append_value(out, &row->v[i]);
    }
}

/* `kind "name" number `: what every line but a row's begins with. */
static void append_head(struct buf *out, const char *kind, const struct item *item)
{
    buf_append_str(out, kind);
    buf_append_char(out, ' ');
    append_quoted(out, item->name);
    buf_append_char(out, ' ');
    buf_append_i64(out, item->number);
    buf_append_char(out, ' ');
}

/* A chunk is as large as a megabyte: its digest says as much about equality. */
static belay_rc append_chunk(struct buf *out, const struct item *item,
                             struct belay_error *err)
{
    uint8_t digest[SHA256_LEN];
    char hex[SHA256_HEX_LEN + 1];
    belay_rc rc = sha256(item->data, digest, err);

    if (rc)
        return rc;
    hex_encode(bytes_of(digest, sizeof(digest)), hex);
    append_head(out, "chunk", item);
    buf_printf(out, "sha256=%s len=%zu", hex, item->data.len);
    return BELAY_OK;
}

static bool is_internal(const struct item *item)
{
    if (item->kind == ITEM_ROW)
        return row_type_is(item->row->type, ROW_INTERNAL);
    return item->kind == ITEM_RANK && bytes_eq(item->name, bytes_str(SLOT_INDEX));
}

static belay_rc dump_item(void *arg, const struct item *item, struct belay_error *err)
{
    struct buf *out = arg;
    belay_rc rc = BELAY_OK;

    if (is_internal(item))
        return BELAY_OK;
    switch (item->kind) {
    case ITEM_ROW:
        append_row(out, item->row);
        break;
    case ITEM_RANK:
        append_head(out, "rank", item);
        append_quoted(out, item->member);
        break;
    case ITEM_LOG:
        append_head(out, "log", item);
        append_quoted(out, item->data);
        break;
    case ITEM_FEED:
        append_head(out, "feed", item);
        append_quoted(out, item->data);
        break;
    case ITEM_CHUNK:
        rc = append_chunk(out, item, err);
        break;
    }
    buf_append_char(out, '\n');
    /* Noticed here rather than at the end, so that a walk is not finished in vain. */
    return rc == BELAY_OK && out->failed ? err_no_memory(err, "a dump") : rc;
}

belay_rc dump_namespace(struct driver *d, struct bytes ns, struct buf *out,
                        struct belay_error *err)
{
    size_t before = out->len;

    if (out->failed)
        return err_no_memory(err, "a dump");
    belay_rc rc = driver_walk(d, ns, dump_item, out, err);
    if (rc)
        out->len = before; /* half a dump is none */
    return rc;
}
