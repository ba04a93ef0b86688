#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "tap.h"

#define COMMON 1767323045678 /* 2026-01-02T03:04:05.678Z */

static int64_t wall_ms(void *arg)
{
    return *(const int64_t *)arg;
}

/* What a sink has written since the last look, through a pipe. */
struct capture {
    int ends[2];
    int64_t now;
    struct log_sink sink;
    char text[70000];
};

static bool capture_open(struct tap *t, struct capture *c, enum log_format format)
{
    *c = (struct capture){ .now = COMMON };
    if (!TAP_EQ(t, pipe(c->ends), 0))
        return false;
    fcntl(c->ends[0], F_SETFL, O_NONBLOCK);
    c->sink = (struct log_sink){
        .fd = c->ends[1],
        .format = format,
        .least = LOG_INFO,
        .clock = { .wall_ms = wall_ms, .arg = &c->now },
        .mutex = PTHREAD_MUTEX_INITIALIZER,
    };
    return true;
}

static void capture_close(struct capture *c)
{
    close(c->ends[0]);
    close(c->ends[1]);
}

static const char *capture_take(struct capture *c)
{
    ssize_t n = read(c->ends[0], c->text, sizeof(c->text) - 1);
    c->text[n > 0 ? n : 0] = '\0';
    return c->text;
}

static void test_key_value(struct tap *t)
{
    struct capture c;
    const struct log_field fields[] = {
        log_text("execution", bytes_str("exe_01")),
        log_number("fence", 3),
        { .key = "late", .kind = LOG_BOOL, .number = 1 },
        { .key = "early", .kind = LOG_BOOL, .number = 0 },
        { .key = "token", .kind = LOG_SECRET, .text = bytes_str("hunter2") },
        log_number("least", INT64_MIN),
    };

    if (!capture_open(t, &c, LOG_KEY_VALUE))
        return;
    log_event(&c.sink, LOG_WARN, "lease_lost", fields, COUNT_OF(fields));
    TAP_STR(t, capture_take(&c),
            "2026-01-02T03:04:05.678Z level=warn event=lease_lost execution=exe_01 "
            "fence=3 late=true early=false token=*** least=-9223372036854775808\n");
    log_event(&c.sink, LOG_INFO, "start", NULL, 0);
    TAP_STR(t, capture_take(&c), "2026-01-02T03:04:05.678Z level=info event=start\n");
    capture_close(&c);
}

static void test_json(struct tap *t)
{
    struct capture c;
    const struct log_field fields[] = {
        log_text("execution", bytes_str("exe_01")),
        log_number("fence", 3),
        { .key = "late", .kind = LOG_BOOL, .number = 1 },
        { .key = "early", .kind = LOG_BOOL, .number = 0 },
        { .key = "token", .kind = LOG_SECRET, .text = bytes_str("hunter2") },
    };

    if (!capture_open(t, &c, LOG_JSON))
        return;
    log_event(&c.sink, LOG_ERROR, "lease_lost", fields, COUNT_OF(fields));
    TAP_STR(t, capture_take(&c),
            "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"error\",\"event\":"
            "\"lease_lost\",\"execution\":\"exe_01\",\"fence\":3,\"late\":true,"
            "\"early\":false,\"token\":\"***\"}\n");
    log_event(&c.sink, LOG_INFO, "start", NULL, 0);
    TAP_STR(t, capture_take(&c),
            "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\",\"event\":"
            "\"start\"}\n");
    capture_close(&c);
}

static void test_levels(struct tap *t)
{
    static const enum log_level levels[] = { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
    static const char *const names[] = { "debug", "info", "warn", "error" };
    struct capture c;

    if (!capture_open(t, &c, LOG_KEY_VALUE))
        return;
    for (size_t least = 0; least < COUNT_OF(levels); least++) {
        for (size_t level = 0; level < COUNT_OF(levels); level++) {
            char want[80] = "";
            if (level >= least)
                (void)snprintf(want, sizeof(want),
                               "2026-01-02T03:04:05.678Z level=%s event=e\n",
                               names[level]);
            c.sink.least = levels[least];
            log_event(&c.sink, levels[level], "e", NULL, 0);
            TAP_STR(t, capture_take(&c), want);
        }
    }
    capture_close(&c);
}

/* clang-format off */
static const struct {
    int64_t ms;
    const char *want;
} times[] = {
    { 0,              "1970-01-01T00:00:00.000Z" },
    { 1,              "1970-01-01T00:00:00.001Z" },
    { 86399999,       "1970-01-01T23:59:59.999Z" },
    { 86400000,       "1970-01-02T00:00:00.000Z" },
    { 951782399999,   "2000-02-28T23:59:59.999Z" },
    { 951782400000,   "2000-02-29T00:00:00.000Z" },
    { 951868800000,   "2000-03-01T00:00:00.000Z" },
    { 1077926400000,  "2004-02-28T00:00:00.000Z" },
    { 1078012800000,  "2004-02-29T00:00:00.000Z" },
    { 1078099200000,  "2004-03-01T00:00:00.000Z" },
    { 1772236800000,  "2026-02-28T00:00:00.000Z" },
    { 1772323200000,  "2026-03-01T00:00:00.000Z" },
    { 1798761599999,  "2026-12-31T23:59:59.999Z" },
    { 4107542399999,  "2100-02-28T23:59:59.999Z" },
    { 4107542400000,  "2100-03-01T00:00:00.000Z" },
    { 253402300799999, "9999-12-31T23:59:59.999Z" },
    { 253402300800000, "10000-01-01T00:00:00.000Z" },
    { -1,             "1970-01-01T00:00:00.000Z" },
    { INT64_MIN,      "1970-01-01T00:00:00.000Z" },
    { TIME_MAX_MS,    "287396-10-12T08:59:00.991Z" },
    { INT64_MAX,      "287396-10-12T08:59:00.991Z" },
};
/* clang-format on */

static void test_time(struct tap *t)
{
    struct capture c;

    if (!capture_open(t, &c, LOG_KEY_VALUE))
        return;
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        c.now = times[i].ms;
        log_event(&c.sink, LOG_INFO, "e", NULL, 0);
        char *line = c.text;
        capture_take(&c);
        line[strcspn(line, " ")] = '\0';
        TAP_STR(t, line, times[i].want);
    }
    capture_close(&c);
}

#define LIT(text)                                 \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

/* clang-format off */
static const struct {
    struct bytes text;
    const char *want; /* behind the equals sign */
} texts[] = {
    { LIT("plain"),                       "plain" },
    { LIT(""),                            "\"\"" },
    { LIT("two words"),                   "\"two words\"" },
    { LIT("a=b"),                         "\"a=b\"" },
    { LIT("\""),                          "\"\\\"\"" },
    { LIT("say \"hi\""),                  "\"say \\\"hi\\\"\"" },
    { LIT("\\"),                          "\\\\" },
    { LIT("\\\""),                        "\"\\\\\\\"\"" },
    { LIT("a\nlevel=error event=forged"), "\"a\\nlevel=error event=forged\"" },
    { LIT("a\nb"),                        "a\\nb" },
    { LIT("\r\t\x1b[2J"),                 "\\r\\t\\x1b[2J" },
    { LIT("a\0b"),                        "a\\x00b" },
    { LIT("\xc3\xa9\xe2\x82\xac"),        "\xc3\xa9\xe2\x82\xac" },
    { LIT("\xc2\x85"),                    "\\xc2\\x85" },
    { LIT("\xff\xc3"),                    "\\xff\\xc3" },
    { LIT("\xc3\" x"),                    "\"\\xc3\\\" x\"" },
};
/* clang-format on */

static void test_forged(struct tap *t)
{
    struct capture c;

    if (!capture_open(t, &c, LOG_KEY_VALUE))
        return;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct log_field field = log_text("key", texts[i].text);
        char want[200];

        log_event(&c.sink, LOG_INFO, "e", &field, 1);
        (void)snprintf(want, sizeof(want),
                       "2026-01-02T03:04:05.678Z level=info event=e key=%s\n",
                       texts[i].want);
        TAP_STR(t, capture_take(&c), want);
    }
    struct log_field none = log_text("key", bytes_of(NULL, 0));
    log_event(&c.sink, LOG_INFO, "e", &none, 1);
    TAP_OK(t, strstr(capture_take(&c), " key=\"\"\n"));
    capture_close(&c);
}

static void test_json_is_valid(struct tap *t)
{
    struct capture c;

    if (!capture_open(t, &c, LOG_JSON))
        return;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct log_field field = log_text("key", texts[i].text);

        log_event(&c.sink, LOG_INFO, "e", &field, 1);
        const char *line = capture_take(&c);
        size_t len = strlen(line);
        TAP_OK(t, len > 0 && strchr(line, '\n') == line + len - 1);

        json_t *value = json_loads(line, JSON_ALLOW_NUL, NULL);
        if (!TAP_OK(t, value))
            continue;
        json_t *key = json_object_get(value, "key");
        struct bytes got = bytes_of(json_string_value(key), json_string_length(key));
        if (bytes_is_utf8(texts[i].text))
            TAP_OK(t, bytes_eq(got, texts[i].text));
        else
            TAP_OK(t, strstr(json_string_value(key), "\xef\xbf\xbd"));
        json_decref(value);
    }
    capture_close(&c);
}

static void test_secrets(struct tap *t)
{
    static const enum log_format formats[] = { LOG_KEY_VALUE, LOG_JSON };
    static const char *const secrets[] = { "", "hunter2", "with space \"and quote\"" };

    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        struct capture c;
        if (!capture_open(t, &c, formats[i]))
            return;
        for (size_t k = 0; k < COUNT_OF(secrets); k++) {
            struct log_field field = { .key = "token",
                                       .kind = LOG_SECRET,
                                       .text = bytes_str(secrets[k]),
                                       .number = 424242 };
            log_event(&c.sink, LOG_INFO, "e", &field, 1);
            const char *line = capture_take(&c);
            TAP_OK(t, strstr(line, formats[i] == LOG_JSON ? "\"token\":\"***\"}"
                                                          : " token=***\n"));
            TAP_OK(t, secrets[k][0] == '\0' || !strstr(line, secrets[k]));
            TAP_OK(t, !strstr(line, "hunter2") && !strstr(line, "424242"));
        }
        capture_close(&c);
    }
}

/* A datagram socket or a pipe in packet mode keeps the borders of single writes. */
static void test_single_write(struct tap *t)
{
    struct capture c;
    char *big = calloc(1, 3000);

    if (!TAP_OK(t, big))
        return;
    memset(big, 'x', 3000);
    if (capture_open(t, &c, LOG_KEY_VALUE)) {
        int packets[2];
        if (TAP_EQ(t, pipe2(packets, O_DIRECT), 0)) {
            struct log_field field = log_text("key", bytes_of(big, 3000));
            c.sink.fd = packets[1];
            log_event(&c.sink, LOG_INFO, "e", &field, 1);
            log_event(&c.sink, LOG_INFO, "f", &field, 1);
            ssize_t n = read(packets[0], c.text, sizeof(c.text));
            TAP_EQ(t, n,
                   3000 + (ssize_t)strlen("2026-01-02T03:04:05.678Z level=info "
                                          "event=e key=\n"));
            TAP_EQ(t, c.text[n > 0 ? n - 1 : 0], '\n');
            close(packets[0]);
            close(packets[1]);
        }
        capture_close(&c);
    }
    free(big);
}

static void test_broken_sink(struct tap *t)
{
    int64_t now = COMMON;
    struct log_sink sink = { .fd = -1,
                             .clock = { .wall_ms = wall_ms, .arg = &now },
                             .mutex = PTHREAD_MUTEX_INITIALIZER };

    log_event(&sink, LOG_ERROR, "e", NULL, 0);
    sink.fd = open("/dev/full", O_WRONLY);
    if (TAP_OK(t, sink.fd >= 0)) {
        log_event(&sink, LOG_ERROR, "e", NULL, 0);
        close(sink.fd);
    }
}

/* Fills a pipe that nobody reads, up to the last page. */
static unsigned fill(struct capture *c)
{
    char page[4096];
    unsigned n = 0;

    memset(page, 'x', sizeof(page));
    fcntl(c->ends[1], F_SETFL, O_NONBLOCK);
    while (write(c->ends[1], page, sizeof(page)) > 0)
        n++;
    fcntl(c->ends[1], F_SETFL, 0);
    return n;
}

static void test_stalled_sink(struct tap *t)
{
    static const char *const want[] = {
        [LOG_KEY_VALUE] = "2026-01-02T03:04:05.678Z level=info event=e dropped=3\n",
        [LOG_JSON] = "{\"time\":\"2026-01-02T03:04:05.678Z\",\"level\":\"info\","
                     "\"event\":\"e\",\"dropped\":3}\n",
    };

    for (size_t i = 0; i < COUNT_OF(want); i++) {
        struct capture c;
        if (!capture_open(t, &c, (enum log_format)i))
            return;
        TAP_OK(t, fill(&c) > 0);
        for (unsigned k = 0; k < 3; k++) /* returns */
            log_event(&c.sink, LOG_INFO, "e", NULL, 0);
        log_event(&c.sink, LOG_DEBUG, "not told anyway", NULL, 0);
        while (capture_take(&c)[0] == 'x')
            continue;
        log_event(&c.sink, LOG_INFO, "e", NULL, 0);
        TAP_STR(t, capture_take(&c), want[i]);
        log_event(&c.sink, LOG_INFO, "e", NULL, 0);
        TAP_OK(t, !strstr(capture_take(&c), "dropped"));
        capture_close(&c);
    }
}

#define THREADS 4
#define LINES 500

static void *chatter(void *arg)
{
    struct log_sink *sink = arg;
    struct log_field field = log_text(
        "key", bytes_str("a text long enough to be torn if it were not whole"));

    for (unsigned i = 0; i < LINES; i++)
        log_event(sink, LOG_INFO, "chatter", &field, 1);
    return NULL;
}

static void test_threads(struct tap *t)
{
    static const char want[] =
        "2026-01-02T03:04:05.678Z level=info event=chatter "
        "key=\"a text long enough to be torn if it were not whole\"\n";
    int64_t now = COMMON;
    struct log_sink sink = { .fd = memfd_create("log", 0),
                             .clock = { .wall_ms = wall_ms, .arg = &now },
                             .mutex = PTHREAD_MUTEX_INITIALIZER };
    pthread_t threads[THREADS];
    unsigned whole = 0;

    if (!TAP_OK(t, sink.fd >= 0))
        return;
    fcntl(sink.fd, F_SETFL, O_APPEND);
    for (size_t i = 0; i < THREADS; i++)
        TAP_EQ(t, pthread_create(&threads[i], NULL, chatter, &sink), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    char line[sizeof(want)] = "";
    lseek(sink.fd, 0, SEEK_SET);
    while (read(sink.fd, line, sizeof(want) - 1) == (ssize_t)sizeof(want) - 1)
        whole += strcmp(line, want) == 0;
    TAP_EQ(t, whole, THREADS * LINES);
    close(sink.fd);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a line of key-value pairs", test_key_value },
        { "a line of JSON", test_json },
        { "events below the least level are dropped", test_levels },
        { "time is UTC with milliseconds", test_time },
        { "no value can forge a line", test_forged },
        { "every JSON line is valid and holds the text", test_json_is_valid },
        { "secrets are not printed", test_secrets },
        { "a line is a single write", test_single_write },
        { "a sink that cannot be written stops nothing", test_broken_sink },
        { "lines nobody reads are dropped and counted", test_stalled_sink },
        { "lines of several threads do not mix", test_threads },
    };
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
