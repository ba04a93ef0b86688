/* Commits, blobs, and reading them back as text. */
#include "nouns.h"

belay_rc commit(struct world *w, const char *id, struct belay_commit c)
{
    c.size = sizeof(c);
    return belay_session_commit(session(w, id), &c, w->arena, &w->committed, &w->err);
}

const char *node(struct world *w, const char *id, const char *parent)
{
    const char *up = parent ? text(w, ",\"parent_node_id\":\"%s\"", parent) : "";

    return text(w,
                "{\"event\":{\"Conversation\":{\"id\":\"%s\",\"parts\":[],"
                "\"role\":\"user\"}},\"kind\":\"event\",\"node_id\":\"%s\"%s}",
                id, id, up);
}

belay_rc say(struct world *w, const char *id, int64_t expected, const char *node_id,
             const char *parent)
{
    const char *json = node(w, node_id, parent);

    return commit(w, id,
                  (struct belay_commit){ .expected_revision = expected,
                                         .graph = BELAY_GRAPH_APPEND,
                                         .nodes = &json,
                                         .n_nodes = 1 });
}

belay_rc finish(struct world *w, const char *id, int64_t expected,
                const struct belay_claim *c)
{
    return commit(w, id,
                  (struct belay_commit){ .expected_revision = expected,
                                         .completes = &c,
                                         .n_completes = 1 });
}

int64_t revision(struct world *w, const char *id)
{
    belay_rc rc = belay_session_head(session(w, id), w->arena, &w->head, &w->err);

    if (rc == BELAY_NOT_FOUND)
        return 0;
    return RC(w, rc, BELAY_OK) ? w->head.revision : -1;
}

static const char *names_of(struct world *w, const struct belay_nodes *n)
{
    const char *out = "";

    for (size_t i = 0; i < n->n; i++)
        out = text(w, "%s%s%s", out, i ? " " : "", n->nodes[i].node_id);
    return n->truncated ? text(w, "...%s", out) : out;
}

const char *path(struct world *w, const char *id, const char *leaf)
{
    struct belay_nodes out = { 0 };
    belay_rc rc = belay_session_path(session(w, id), leaf, w->arena, &out, &w->err);

    return rc ? belay_error_info((int)rc)->name : names_of(w, &out);
}

const char *nodes(struct world *w, const char *id)
{
    struct belay_nodes out = { 0 };
    belay_rc rc = belay_session_nodes(session(w, id), 0, 0, w->arena, &out, &w->err);

    return rc ? belay_error_info((int)rc)->name : names_of(w, &out);
}

const char *usage(struct world *w, const char *id)
{
    const struct belay_usage *u = NULL;
    const char *out = "";
    size_t n = 0;
    belay_rc rc = belay_session_usage(session(w, id), w->arena, &u, &n, &w->err);

    if (rc)
        return belay_error_info((int)rc)->name;
    for (size_t i = 0; i < n; i++)
        out = text(w, "%s%s%s/%s %lld %lld %lld %lld", out, i ? "; " : "", u[i].source,
                   u[i].model, (long long)u[i].input_tokens,
                   (long long)u[i].output_tokens, (long long)u[i].cached_input_tokens,
                   (long long)u[i].reasoning_tokens);
    return out;
}

const char *uncommitted(struct world *w, const char *id, int64_t older_than_ms)
{
    const struct belay_attachment *a = NULL;
    const char *out = "";
    size_t n = 0;
    belay_rc rc = belay_attachment_uncommitted(session(w, id), older_than_ms, 0,
                                               w->arena, &a, &n, &w->err);

    if (rc)
        return belay_error_info((int)rc)->name;
    for (size_t i = 0; i < n; i++)
        out = text(w, "%s%s%s", out, i ? " " : "", a[i].attachment_id);
    return out;
}

/* --- blobs --- */

belay_rc blob_try(struct world *w, const void *data, size_t len,
                  const struct belay_blob_options *options)
{
    struct belay_blob_writer *writer = NULL;
    belay_rc rc = belay_blob_open(w->use, options, &writer, &w->err);

    if (!rc)
        rc = belay_blob_write(writer, data, len, &w->err);
    if (!rc)
        rc = belay_blob_finish(writer, &w->blob, &w->err);
    belay_blob_close(writer);
    return rc;
}

const char *blob(struct world *w, const char *bytes)
{
    if (!RC(w, blob_try(w, bytes, strlen(bytes), NULL), BELAY_OK))
        return "?";
    return text(w, "%s", w->blob.sha256);
}

belay_rc blob_read_all(struct world *w, const char *sha256, char **out, size_t *len)
{
    struct belay_blob_reader *r = NULL;
    const void *piece = NULL;
    size_t n = 0;
    belay_rc rc = belay_blob_read_open(w->use, sha256, &r, &w->err);

    *len = 0;
    if (!rc)
        *out = bytes_of(w, 0, (size_t)belay_blob_read_size(r));
    while (!rc && !(rc = belay_blob_read(r, &piece, &n, &w->err)) && n > 0) {
        if (!OK(w, *len + n <= (size_t)belay_blob_read_size(r)))
            break;
        memcpy(*out + *len, piece, n);
        *len += n;
    }
    if (!rc)
        EQ(w, *len, belay_blob_read_size(r));
    belay_blob_read_close(r);
    return rc;
}

const char *content(struct world *w, const char *sha256)
{
    char *out = NULL;
    size_t len = 0;
    belay_rc rc = blob_read_all(w, sha256, &out, &len);

    return rc ? belay_error_info((int)rc)->name : out;
}

bool has_blob(struct world *w, const char *sha256)
{
    struct belay_blob_reader *r = NULL;
    belay_rc rc = belay_blob_read_open(w->use, sha256, &r, &w->err);

    belay_blob_read_close(r);
    if (rc != BELAY_NOT_FOUND)
        (void)RC(w, rc, BELAY_OK);
    return rc == BELAY_OK;
}

void collect(struct world *w)
{
    struct belay_gc_options o = { .size = sizeof(o), .grace_ms = BELAY_NONE };

    (void)RC(w, belay_gc(w->use, &o, &w->gc, &w->err), BELAY_OK);
}
