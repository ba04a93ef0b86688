/* attr.h - the few compiler attributes this code uses. */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

/* Hardly ever called.  Whatever leads to a call of it is laid out apart from what is run every
 * time, which then takes fewer lines of a cache that may be cold. */
#define RARE __attribute__((cold))

/* Runs fn(&variable) when the variable leaves its scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif /* BASE_ATTR_H */
