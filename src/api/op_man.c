#include "api/op_handlers.h"
#include "api/op_text.h"

/* Running text: nothing in it is a request, and a minus is a minus. */
static void append_roff(struct buf *out, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = (char)text.ptr[i];
        bool starts_line = i == 0 || text.ptr[i - 1] == '\n';

        if (starts_line && (c == '.' || c == '\''))
            buf_append_str(out, "\\&");
        if (c == '\\')
            buf_append_str(out, "\\e");
        else if (c == '-')
            buf_append_str(out, "\\-");
        else
            buf_append_char(out, c);
    }
}

static void append_roff_str(struct buf *out, const char *text)
{
    append_roff(out, bytes_str(text));
}

static void append_arg(struct buf *out, const struct op_arg *arg)
{
    struct buf typed CLEANUP(buf_release) = { 0 };
    struct buf text CLEANUP(buf_release) = { 0 };

    buf_append_str(out, ".TP\n\\fB");
    op_append_arg(&typed, arg);
    append_roff(out, buf_view(&typed));
    buf_append_str(out, "\\fR\n");
    buf_append_str(&text, arg->help);
    op_append_remarks(&text, arg);
    append_roff(out, buf_view(&text));
    buf_append_str(out, ".\n");
    out->failed |= typed.failed || text.failed;
}

static void append_operation(struct buf *out, const struct operation *op)
{
    struct buf usage CLEANUP(buf_release) = { 0 };

    buf_append_str(out, ".TP\n\\fBbelay ");
    append_roff_str(out, op->words);
    buf_append_str(out, "\\fR");
    op_append_usage(&usage, op);
    append_roff(out, buf_view(&usage));
    buf_append_char(out, '\n');
    append_roff_str(out, op->summary);
    buf_append_str(out, ".\n");
    if (op->details) {
        append_roff_str(out, op->details);
        buf_append_char(out, '\n');
    }
    if (op->http_method) {
        buf_append_str(out, "Over HTTP: ");
        append_roff_str(out, op->http_method);
        buf_append_char(out, ' ');
        append_roff_str(out, op->http_path);
        buf_append_str(out, ".\n");
    }
    if (op->n_args > 0)
        buf_append_str(out, ".RS\n");
    for (size_t i = 0; i < op->n_args; i++)
        append_arg(out, &op->args[i]);
    if (op->n_args > 0)
        buf_append_str(out, ".RE\n");
    out->failed |= usage.failed;
}

static bool env_is_new(const struct op_table *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *env = op_arg_at(t, i)->env;
        if (env && strcmp(env, op_arg_at(t, n)->env) == 0)
            return false;
    }
    return true;
}

static void append_environment(struct buf *out, const struct op_table *t)
{
    const struct op_arg *arg;

    for (size_t i = 0; (arg = op_arg_at(t, i)) != NULL; i++) {
        struct buf option CLEANUP(buf_release) = { 0 };

        if (!arg->env || !env_is_new(t, i))
            continue;
        op_append_option(&option, arg);
        buf_append_str(out, ".TP\n\\fB");
        append_roff_str(out, arg->env);
        buf_append_str(out, "\\fR\nTaken where \\fB");
        append_roff(out, buf_view(&option));
        buf_append_str(out, "\\fR is not given; empty is the same as unset.\n");
        out->failed |= option.failed;
    }
}

/* Every exit status once, with the codes that lead to it. */
static void append_statuses(struct buf *out)
{
    for (int status = 0; status < 256; status++) {
        bool any = false;

        for (int code = 0; belay_error_code(belay_error_info(code)->name) == code;
             code++) {
            const struct belay_error_entry *info = belay_error_info(code);
            if (info->exit_code != status)
                continue;
            if (!any)
                buf_printf(out, ".TP\n.B %d\n", status);
            buf_append_str(out, any ? ",\n" : "");
            append_roff_str(out, info->name);
            any = true;
        }
        if (any)
            buf_append_char(out, '\n');
    }
}

static const char head[] =
    ".nh\n"
    ".ad l\n"
    ".SH NAME\n"
    "belay \\- work that survives the process that was doing it\n"
    ".SH SYNOPSIS\n"
    ".B belay\n"
    "[\\fIOPTION\\fR]... \\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n"
    ".SH DESCRIPTION\n"
    "Belay keeps work alive when the process that was doing it dies.\n"
    "This program works directly on a store; no server is needed on one machine, and\n"
    "any number of processes may share a store.\n"
    ".PP\n"
    "Options may stand before, between and behind the words of a command.\n"
    "An option's value is its next word or follows an equals sign.\n"
    "Behind \\fB\\-\\-\\fR nothing is an option.\n"
    "A duration is a whole number and one of ms, s, m, h and d, as in 500ms or 15m.\n"
    ".SH OPTIONS\n";

static const char tail[] =
    "A failure is told in one line on standard error, or with \\fB\\-\\-json\\fR as\n"
    "{\\(dqerror\\(dq:{\\(dqcode\\(dq,\\(dqmessage\\(dq,\\(dqdetail\\(dq}}.\n"
    "Standard output then holds nothing.\n"
    "An answer that could not be written to standard output is status 1.\n"
    ".SH SEE ALSO\n"
    ".BR belay (3)\n";

belay_rc op_man(const struct op_call *call, json_t **out, struct belay_error *err)
{
    struct buf text CLEANUP(buf_release) = { 0 };
    const struct op_table *t = call->table;

    buf_printf(&text, ".TH BELAY 1 \"\" \"belay %s\" \"User Commands\"\n",
               belay_version());
    buf_append_str(&text, head);
    for (size_t i = 0; i < t->n_globals; i++)
        append_arg(&text, &t->globals[i]);
    buf_append_str(&text, ".SH COMMANDS\n");
    for (size_t g = 0; g < t->n_groups; g++) {
        buf_append_str(&text, ".SS ");
        append_roff_str(&text, t->groups[g].title);
        buf_append_char(&text, '\n');
        for (size_t i = 0; i < t->groups[g].n_ops; i++)
            append_operation(&text, &t->groups[g].ops[i]);
    }
    buf_append_str(&text, ".SH ENVIRONMENT\n");
    append_environment(&text, t);
    buf_append_str(&text, ".SH EXIT STATUS\n");
    append_statuses(&text);
    buf_append_str(&text, ".PP\n");
    buf_append_str(&text, tail);
    return op_prose(&text, out, err);
}
