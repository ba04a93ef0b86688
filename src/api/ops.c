#include "api/ops.h"

size_t op_count(const struct op_table *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_groups; i++)
        n += t->groups[i].n_ops;
    return n;
}

const struct operation *op_at(const struct op_table *t, size_t i)
{
    for (size_t g = 0; g < t->n_groups; g++) {
        if (i < t->groups[g].n_ops)
            return &t->groups[g].ops[i];
        i -= t->groups[g].n_ops;
    }
    return NULL;
}

const struct operation *op_find(const struct op_table *t, struct bytes words)
{
    for (size_t i = 0; i < op_count(t); i++) {
        if (bytes_eq(words, bytes_str(op_at(t, i)->words)))
            return op_at(t, i);
    }
    return NULL;
}

bool op_words_begin(const char *words, struct bytes prefix)
{
    size_t len = strlen(words);

    if (prefix.len == 0)
        return true;
    return prefix.len <= len && memcmp(words, prefix.ptr, prefix.len) == 0 &&
           (words[prefix.len] == '\0' || words[prefix.len] == ' ');
}

bool op_is_prefix(const struct op_table *t, struct bytes words)
{
    for (size_t i = 0; i < op_count(t); i++) {
        const char *its = op_at(t, i)->words;
        if (op_words_begin(its, words) && strlen(its) > words.len)
            return true;
    }
    return false;
}

/* The word of the i-th operation that comes behind `words`; empty when it has none. */
static struct bytes word_behind(const struct op_table *t, size_t i, struct bytes words)
{
    const char *its = op_at(t, i)->words;

    if (!op_words_begin(its, words) || strlen(its) <= words.len)
        return bytes_of(NULL, 0);
    its += words.len + (words.len > 0); /* the space */
    return bytes_of(its, strcspn(its, " "));
}

static bool seen_before(const struct op_table *t, size_t n, struct bytes words,
                        struct bytes word)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes_eq(word_behind(t, i, words), word))
            return true;
    }
    return false;
}

struct bytes op_next_word(const struct op_table *t, struct bytes words, size_t i)
{
    for (size_t at = 0; at < op_count(t); at++) {
        struct bytes word = word_behind(t, at, words);
        if (word.len > 0 && !seen_before(t, at, words, word) && i-- == 0)
            return word;
    }
    return bytes_of(NULL, 0);
}

const struct op_arg *op_arg_at(const struct op_table *t, size_t i)
{
    if (i < t->n_globals)
        return &t->globals[i];
    i -= t->n_globals;
    for (size_t g = 0; g < t->n_groups; g++) {
        for (size_t at = 0; at < t->groups[g].n_ops; at++) {
            const struct operation *op = &t->groups[g].ops[at];
            if (i < op->n_args)
                return &op->args[i];
            i -= op->n_args;
        }
    }
    return NULL;
}

const struct op_value *op_get(const struct op_call *call, const char *name)
{
    for (size_t i = 0; i < call->n_values; i++) {
        if (strcmp(call->values[i].arg->name, name) == 0)
            return &call->values[i];
    }
    return NULL;
}
