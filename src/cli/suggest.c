#include "cli/suggest.h"

#define WORD_MAX 32

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment; both words are at most WORD_MAX long. */
static size_t distance(struct bytes a, struct bytes b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    for (size_t j = 0; j <= b.len; j++)
        above[j] = j;
    memcpy(before, above, sizeof(rows[0]));
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            bool same = a.ptr[i - 1] == b.ptr[j - 1];
            bool swapped = i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] &&
                           a.ptr[i - 2] == b.ptr[j - 1];

            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !same);
            if (swapped)
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
    }
    return above[b.len];
}

void suggest_offer(struct suggestion *s, struct bytes candidate)
{
    if (s->typed.len > WORD_MAX || candidate.len > WORD_MAX)
        return;
    size_t d = distance(s->typed, candidate);
    size_t longer = s->typed.len > candidate.len ? s->typed.len : candidate.len;
    if (d * 3 <= longer && d < s->distance) {
        s->best = candidate;
        s->distance = d;
    }
}
