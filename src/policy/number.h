/* number.h - JSON numbers in order.
 *
 * Pure: no I/O, no memory.
 */
#ifndef POLICY_NUMBER_H
#define POLICY_NUMBER_H

#include <jansson.h>
#include <stdint.h>

/* Exactly: a double that is near an integer is not taken for it. */
static inline int number_cmp_mixed(int64_t i, double d)
{
    if (d >= 9223372036854775808.0) /* 2^63 */
        return -1;
    if (d < -9223372036854775808.0)
        return 1;
    int64_t whole = (int64_t)d;
    if (i != whole)
        return i < whole ? -1 : 1;
    double rest = d - (double)whole; /* exact: whole came from a double */
    return (rest < 0) - (rest > 0);
}

/* Negative, zero or positive; both are numbers. */
static inline int number_cmp(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t x = json_integer_value(a), y = json_integer_value(b);
        return (x > y) - (x < y);
    }
    if (json_is_integer(a))
        return number_cmp_mixed(json_integer_value(a), json_real_value(b));
    if (json_is_integer(b))
        return -number_cmp_mixed(json_integer_value(b), json_real_value(a));
    double x = json_real_value(a), y = json_real_value(b);
    return (x > y) - (x < y);
}

#endif /* POLICY_NUMBER_H */
