/* The rows about fleets: shared memory of this machine, no store. */
#include "api/ops_fleet.h"

#include <belay/fleet.h>

#include "api/op_handlers.h"
#include "api/ops_args.h"

#define ARG_FLEET_NAME                                                               \
    {                                                                                \
        .name = "name", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1, .max = 63, \
        .placeholder = "NAME", .env = "BELAY_FLEET", .fallback = "default",          \
        .help = "the fleet"                                                          \
    }
#define ARG_FLEET                                                                 \
    {                                                                             \
        .name = "fleet", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 63, \
        .placeholder = "NAME", .env = "BELAY_FLEET", .fallback = "default",       \
        .help = "the fleet"                                                       \
    }
#define ARG_SUBJECT                                                          \
    {                                                                        \
        .name = "subject", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1, \
        .max = 65535, .required = true, .placeholder = "SUBJECT",            \
        .help = "what is contested"                                          \
    }
#define ARG_SUBJECT_KIND                                                         \
    {                                                                            \
        .name = "kind", .kind = OP_OPTION, .type = OP_I64, .min = 0, .max = 255, \
        .placeholder = "N", .fallback = "0",                                     \
        .help = "of the subject; the same name under two kinds is two subjects"  \
    }

static const struct op_arg status_args[] = {
    { .name = "name",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .min = 1,
      .max = 63,
      .placeholder = "NAME",
      .help = "the fleet; without it all of this user are listed" },
    { .name = "watch",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "show it again and again, until told to stop" },
    { .name = "every",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 50,
      .max = 3600000,
      .placeholder = "D",
      .fallback = "1s",
      .help = "how often, with --watch" },
};

static const struct op_arg claim_args[] = {
    ARG_SUBJECT,
    { .name = "owner",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 65535,
      .required = true,
      .placeholder = "O",
      .help = "who claims, for those who have to yield" },
    ARG_FLEET,
    ARG_SUBJECT_KIND,
    { .name = "wait",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = TIME_MAX_MS,
      .placeholder = "D",
      .help = "wait so long while another has it" },
    { .name = "ttl",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 300,
      .max = BELAY_LEASE_MAX_MS,
      .placeholder = "D",
      .help = "renewed all the time; others may take it when this command is stopped "
              "for longer. Without it only its end gives the subject up" },
    { .name = "for",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = TIME_MAX_MS,
      .placeholder = "D",
      .help = "release it by itself then" },
    { .name = "grace",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = 3600000,
      .placeholder = "D",
      .fallback = "5s",
      .help = "of a command whose claim is lost: from TERM to KILL" },
    { .name = "command",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .repeated = true,
      .max = OP_TEXT_MAX,
      .placeholder = "COMMAND",
      .help = "run while the subject is held, with its arguments; behind --" },
};

static const struct op_arg release_args[] = {
    ARG_SUBJECT,
    ARG_FLEET,
    ARG_SUBJECT_KIND,
    { .name = "token",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 1,
      .max = INT64_MAX,
      .placeholder = "T",
      .help = "only the tenure that has this token" },
};

static const struct op_arg ls_args[] = {
    ARG_FLEET,
    { .name = "all",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "those that nobody holds as well" },
    ARG_LIMIT,
    ARG_CURSOR,
};

static const struct op_arg events_args[] = {
    ARG_FLEET_NAME,
    { .name = "follow",
      .letter = 'f',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "go on with what comes, until told to stop" },
    { .name = "tail",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 0,
      .max = 1000,
      .placeholder = "N",
      .help = "of what was there before only the last N, of each" },
    { .name = "topic",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = BELAY_FLEET_EVENT_MAX,
      .placeholder = "T",
      .help = "only messages about this, and no contests" },
};

static const struct op_arg publish_args[] = {
    { .name = "topic",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .max = BELAY_FLEET_EVENT_MAX,
      .placeholder = "TOPIC",
      .help = "what it is about" },
    { .name = "data",
      .kind = OP_OPTION,
      .type = OP_DATA,
      .max = OP_TEXT_MAX,
      .help = "what it says; with the topic at most 244 bytes" },
    ARG_FLEET,
};

static const struct op_arg name_args[] = { ARG_FLEET_NAME };

static const char *const status_columns[] = {
    "name",       "fleet_id",      "epoch",    "token",         "alive",
    "fleet_size", "subjects_used", "subjects", "virtual_clock", "segment_bytes",
    NULL
};
static const char *const fleet_columns[] = { "name",          "alive",    "fleet_size",
                                             "subjects_used", "subjects", "epoch",
                                             "error",         NULL };
static const char *const member_columns[] = { "node",        "label", "pid", "life",
                                              "beat_age_ms", "holds", NULL };
static const char *const ring_columns[] = { "kind",     "name",        "topology",
                                            "capacity", "payload_max", "published",
                                            NULL };
static const char *const contest_columns[] = { "subject",       "kind",
                                               "owner",         "node",
                                               "token",         "age:claimed_at_ms",
                                               "expires_at_ms", NULL };
static const struct op_rows status_tables[] = {
    { "members", member_columns },
    { "rings", ring_columns },
    { "contests", contest_columns },
    { NULL, NULL },
};
static const char *const claim_columns[] = { "event", "subject",  "owner",
                                             "token", "claim_id", NULL };
static const char *const release_columns[] = { "subject", "kind",  "released", "owner",
                                               "node",    "token", "claim_id", NULL };
static const char *const event_columns[] = { "at_ms", "event", "subject", "owner",
                                             "topic", "data",  "node",    "reason",
                                             "lost",  NULL };
static const char *const publish_columns[] = { "id", "topic", NULL };
static const char *const reset_columns[] = { "name", "epoch", NULL };
static const char *const rm_columns[] = { "name", "removed", NULL };

const struct operation ops_fleet[8] = {
    { .name = "fleet.status",
      .words = "fleet status",
      .summary = "Show a fleet: its members, rings and contests",
      .details = "Only looks; who is dead was asked of the kernel. A member that never "
                 "beat has no age.",
      .args = status_args,
      .n_args = COUNT_OF(status_args),
      .scope = OP_SCOPE_READ,
      .shape = OP_OBJECT,
      .columns = status_columns,
      .essence = "name",
      .rows = "fleets",
      .row_columns = fleet_columns,
      .tables = status_tables,
      .handler = op_fleet_status },
    { .name = "fleet.contest.claim",
      .words = "fleet contest claim",
      .summary = "Claim a subject, and hold it until told to stop",
      .details =
          "Prints the claim at once and goes on; INT, TERM or HUP release it. "
          "However this command ends, the subject is free then. Who yields gets "
          "lease_held with the holder's name. Whoever keeps the data must refuse "
          "a token lower than one it has seen. With a command nothing is printed: it "
          "is run when the subject is had, with BELAY_FLEET_TOKEN in its environment "
          "and in a process group of its own, gets INT, TERM and HUP, and its exit "
          "status (128 and the signal that ended it) is this one's. When the claim is "
          "lost it gets TERM, then KILL, and the status is that of lease_lost; when "
          "this command is killed, so is it. A command that is not there is status "
          "127, one that cannot be run 126.",
      .args = claim_args,
      .n_args = COUNT_OF(claim_args),
      .scope = OP_SCOPE_WORK,
      .shape = OP_LIST,
      .columns = claim_columns,
      .essence = "token",
      .lasts = true,
      .is_live = true,
      .handler = op_contest_claim,
      .exit_of = op_exit_of_command },
    { .name = "fleet.contest.release",
      .words = "fleet contest release",
      .summary = "Take a subject from whoever holds it",
      .details = "Its holder finds the claim lost. not_found: nobody holds it.",
      .args = release_args,
      .n_args = COUNT_OF(release_args),
      .scope = OP_SCOPE_OPERATE,
      .shape = OP_OBJECT,
      .columns = release_columns,
      .essence = "token",
      .handler = op_contest_release },
    { .name = "fleet.contest.ls",
      .words = "fleet contest ls",
      .summary = "List the subjects that are held",
      .args = ls_args,
      .n_args = COUNT_OF(ls_args),
      .scope = OP_SCOPE_READ,
      .shape = OP_LIST,
      .columns = contest_columns,
      .essence = "subject",
      .handler = op_contest_ls },
    { .name = "fleet.events",
      .words = "fleet events",
      .summary = "List what happened to the contests of a fleet",
      .details =
          "The log is bounded: what was overwritten before it was read is told as "
          "an event lost with its number, and a reset of the fleet as reset. Who "
          "follows is a member meanwhile, and sleeps until something happens.",
      .args = events_args,
      .n_args = COUNT_OF(events_args),
      .scope = OP_SCOPE_READ,
      .shape = OP_LIST,
      .columns = event_columns,
      .essence = "subject",
      .handler = op_fleet_events },
    { .name = "fleet.publish",
      .words = "fleet publish",
      .summary = "Publish a message to whoever listens in a fleet",
      .details = "It is kept until newer ones of the same member take its place; it is "
                 "not delivered to anybody in particular.",
      .args = publish_args,
      .n_args = COUNT_OF(publish_args),
      .scope = OP_SCOPE_WORK,
      .shape = OP_OBJECT,
      .columns = publish_columns,
      .essence = "id",
      .handler = op_fleet_publish },
    { .name = "fleet.reset",
      .words = "fleet reset",
      .summary = "Take every contest from its holder and empty every ring",
      .details =
          "Members stay; holders find their claims lost, readers are told. Tokens "
          "go on from where they were.",
      .args = name_args,
      .n_args = COUNT_OF(name_args),
      .scope = OP_SCOPE_ADMIN,
      .shape = OP_OBJECT,
      .columns = reset_columns,
      .essence = "epoch",
      .handler = op_fleet_reset },
    { .name = "fleet.rm",
      .words = "fleet rm",
      .summary = "Remove a fleet whose members are all gone",
      .details = "lease_held while one of them lives.",
      .args = name_args,
      .n_args = COUNT_OF(name_args),
      .scope = OP_SCOPE_ADMIN,
      .shape = OP_OBJECT,
      .columns = rm_columns,
      .essence = "name",
      .handler = op_fleet_rm },
};
