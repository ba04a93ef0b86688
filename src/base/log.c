#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

static const char secret[] = "***";

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG:
        return "debug";
    case LOG_INFO:
        return "info";
    case LOG_WARN:
        return "warn";
    case LOG_ERROR:
        return "error";
    }
    return "error";
}

struct date {
    int64_t year;
    int month; /* 1..12 */
    int day;   /* 1..31 */
};

/* The date `days` days after 1970-01-01, for days >= 0.  Years are counted from March
 * inside, so that the leap day is the last of its year. */
static struct date date_of(int64_t days)
{
    int64_t since = days + 719468; /* 0000-03-01 */
    int64_t era = since / 146097;  /* of 400 years */
    int64_t day_of_era = since % 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) /
        365;
    int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153; /* 0 is March */

    return (struct date){
        .year = era * 400 + year_of_era + (month >= 10),
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

static void append_time(struct buf *line, int64_t ms)
{
    int64_t at = time_add_ms(ms, 0); /* into the range that has dates */
    struct date d = date_of(at / 86400000);
    int rest = (int)(at % 86400000);

    buf_printf(line, "%04lld-%02d-%02dT%02d:%02d:%02d.%03dZ", (long long)d.year,
               d.month, d.day, rest / 3600000, rest / 60000 % 60, rest / 1000 % 60,
               rest % 1000);
}

static bool needs_quotes(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ' ' || text.ptr[i] == '"' || text.ptr[i] == '=')
            return true;
    }
    return text.len == 0;
}

static void append_text(struct buf *line, struct bytes text)
{
    if (!needs_quotes(text)) {
        buf_append_escaped(line, text);
        return;
    }
    buf_append_char(line, '"');
    size_t start = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '"')
            continue;
        buf_append_escaped(line, bytes_of(text.ptr + start, i - start));
        buf_append_str(line, "\\\"");
        start = i + 1;
    }
    if (start < text.len)
        buf_append_escaped(line, bytes_of(text.ptr + start, text.len - start));
    buf_append_char(line, '"');
}

static void append_value(struct buf *line, enum log_format format,
                         const struct log_field *f)
{
    struct bytes text = f->kind == LOG_SECRET ? bytes_str(secret) : f->text;

    switch (f->kind) {
    case LOG_NUMBER:
        buf_append_i64(line, f->number);
        break;
    case LOG_BOOL:
        buf_append_str(line, f->number ? "true" : "false");
        break;
    case LOG_TEXT:
    case LOG_SECRET:
        if (format == LOG_JSON)
            json_append_string(line, text);
        else
            append_text(line, text);
        break;
    }
}

static void append_key_value(struct buf *line, const struct log_field *f)
{
    buf_append_char(line, ' ');
    buf_append_str(line, f->key);
    buf_append_char(line, '=');
    append_value(line, LOG_KEY_VALUE, f);
}

static void append_member(struct buf *line, const struct log_field *f)
{
    buf_append_char(line, ',');
    json_append_string(line, bytes_str(f->key));
    buf_append_char(line, ':');
    append_value(line, LOG_JSON, f);
}

/* Everything but its end. */
static void append_event(const struct log_sink *sink, struct buf *line,
                         enum log_level level, const char *event,
                         const struct log_field *fields, size_t n_fields)
{
    bool json = sink->format == LOG_JSON;
    void (*append)(struct buf *, const struct log_field *) =
        json ? append_member : append_key_value;

    if (json)
        buf_append_str(line, "{\"time\":\"");
    append_time(line, sink->clock.wall_ms(sink->clock.arg));
    if (json)
        buf_append_char(line, '"');

    struct log_field head[] = {
        log_text("level", bytes_str(level_name(level))),
        log_text("event", bytes_str(event)),
    };
    for (size_t i = 0; i < COUNT_OF(head); i++)
        append(line, &head[i]);
    for (size_t i = 0; i < n_fields; i++)
        append(line, &fields[i]);
}

static void append_end(const struct log_sink *sink, struct buf *line)
{
    struct log_field dropped = log_number("dropped", sink->n_dropped);
    bool json = sink->format == LOG_JSON;

    if (sink->n_dropped > 0 && json)
        append_member(line, &dropped);
    else if (sink->n_dropped > 0)
        append_key_value(line, &dropped);
    buf_append_str(line, json ? "}\n" : "\n");
}

/* False: it would have to wait.  What cannot be written at all is told to nobody. */
static bool write_line(int fd, const struct buf *line)
{
    struct pollfd to = { .fd = fd, .events = POLLOUT };

    if (poll(&to, 1, 0) == 0)
        return false;
    return write(fd, line->ptr, line->len) >= 0 || errno != EAGAIN;
}

void log_event(struct log_sink *sink, enum log_level level, const char *event,
               const struct log_field *fields, size_t n_fields)
{
    struct buf line CLEANUP(buf_release) = { 0 };

    if (level < sink->least)
        return;
    append_event(sink, &line, level, event, fields, n_fields);
    (void)pthread_mutex_lock(&sink->mutex);
    append_end(sink, &line);
    if (!line.failed && write_line(sink->fd, &line))
        sink->n_dropped = 0;
    else
        sink->n_dropped++;
    (void)pthread_mutex_unlock(&sink->mutex);
}
