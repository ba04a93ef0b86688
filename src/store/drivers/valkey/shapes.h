/* shapes.h - what the files of the upper layer share: keys, rows, lists of arguments.
 *
 *   layout.c   keys of things, and things of keys
 *   values.c   rows and numbers out of answers; lists of arguments; the server's time
 *   packed.c   arguments that go as one, and answers that come so
 *   read.c     questions;  scan.c  those about rank indexes, and what an attempt holds
 *   commit.c   plans: sent, and the answer understood;  plan_args.c, plan_ranks.c,
 *              plan_rest.c, plan_scans.c  their arguments
 *   collect.c  the keys of a namespace and what is in them;  walk.c  shown in order
 *   care.c     erasing;  check.c  looking for damage
 */
#ifndef STORE_DRIVERS_VALKEY_SHAPES_H
#define STORE_DRIVERS_VALKEY_SHAPES_H

#include "store/drivers/valkey/impl.h"

/* --- values.c: arguments that are counted before they are sent --- */

/* Borrowed pieces and numbers as text.  Out of memory is remembered. */
struct vk_args {
    struct belay_arena *arena;
    struct bytes *v;
    size_t n, size;
    bool no_memory;
};

void vk_add(struct vk_args *l, struct bytes b);
void vk_add_str(struct vk_args *l, const char *text);
void vk_add_i64(struct vk_args *l, int64_t i);
void vk_add_id(struct vk_args *l, uint64_t major, uint64_t minor); /* <major>-<minor> */

/* An argument: how, and the one of the list. */
void vk_arg_behind(struct vk_request *r, const char *how, const struct vk_args *one);

/* --- packed.c --- */

/* A FCALL with the namespace's own key and the lists, one behind the other.  A few texts go as
 * one argument, a MessagePack array: as arguments of their own each would be taken apart,
 * allocated and copied by the server before the function sees it.  A long array costs the
 * function more than that. */
void vk_fcall(struct vk_request *r, const char *command, const char *function,
              struct bytes base, struct vk_args *const *lists, size_t n);

/* What a function has answered as one text: arrays, texts, and numbers that are not negative.
 * `corrupt` for anything else, and anything behind it.  The texts are parts of the answer. */
MUST_USE belay_rc vk_unpack(struct bytes packed, struct belay_arena *a,
                            struct vk_reply *out, struct belay_error *err);

/* --- values.c --- */

/* Numbers for struct.unpack, big-endian. */
uint8_t *vk_put_u32(uint8_t *at, size_t n);
uint8_t *vk_put_u16(uint8_t *at, size_t n);

/* --- values.c: answers --- */

MUST_USE bool vk_rank(struct bytes score, int64_t *out); /* however it is written */
MUST_USE bool vk_id(struct bytes id, uint64_t *major, uint64_t *minor);
/* The parts of a stream's entry; `corrupt` for one that is not ours. */
MUST_USE belay_rc vk_entry(const struct vk_reply *entry, uint64_t *major,
                           uint64_t *minor, struct bytes *data,
                           struct belay_error *err);
/* A row out of HGETALL; *out = NULL when there is none.  The key values must live as long
 * as the answer, which the row points into. */
MUST_USE belay_rc vk_row(const struct row_type *type, const struct value *key,
                         const struct vk_reply *reply, struct belay_arena *a,
                         const struct row **out, struct belay_error *err);
/* BELAY_OK for an array; otherwise what the answer is. */
MUST_USE belay_rc vk_is_array(const struct vk_reply *reply, struct belay_error *err);

int64_t vk_mono_us(void);
/* Whether the server's time should be asked for; takes the answer to TIME. */
bool vk_time_is_due(struct vk_store *s);
void vk_take_time(struct vk_store *s, const struct vk_reply *reply, int64_t asked_us);

/* --- layout.c --- */

/* Keys of one namespace, made in the arena.  Out of memory is remembered; the key is empty
 * then. */
struct vk_layout {
    struct belay_arena *arena;
    struct bytes base; /* <prefix>:{<ns>} */
    bool no_memory;
};

enum vk_shape {
    VK_ROW = 'r',
    VK_INDEX = 'z',
    VK_HELD = 'h',
    VK_LOG = 'l',
    VK_FEED = 'f',
    VK_CHUNK = 'c',
    VK_FEEDS = 'F',   /* the hash `feeds` */
    VK_TRIMMED = 'T', /* the hash `trimmed` */
    VK_FOREIGN = '?', /* no key of ours */
};

void vk_layout_init(struct vk_layout *l, const struct vk_store *s, struct bytes ns,
                    struct belay_arena *a);
struct bytes vk_key(struct vk_layout *l, enum vk_shape shape, struct bytes name);
struct bytes vk_key_beside(struct vk_layout *l, const char *name); /* ":feeds" ... */
struct bytes vk_key_of_row(struct vk_layout *l, const struct row_ref *ref);
struct bytes vk_key_of_chunk(struct vk_layout *l, struct bytes upload, int64_t index);
/* What stands before the last part of a row's key. */
struct bytes vk_key_before(struct vk_layout *l, const struct row_type *type,
                           const struct value *prefix);

/* A key taken apart. */
struct vk_place {
    enum vk_shape shape;
    struct row_ref ref; /* VK_ROW, made in the arena; type NULL: unknown to us */
    struct bytes name;  /* index, stream, feed or upload */
    int64_t index;      /* VK_CHUNK */
};
/* VK_FOREIGN where it is none of ours. */
MUST_USE belay_rc vk_place(const struct vk_store *s, struct bytes base,
                           struct bytes key, struct belay_arena *a,
                           struct vk_place *out, struct belay_error *err);

/* --- scan.c --- */

/* Of a question about ranks: whether it needs no answer; whether no function. */
bool vk_scan_is_empty(const struct read *q);
bool vk_scan_is_plain(const struct read *q);
/* Asks one that needs no function; asks all of them that need an answer of the function,
 * which gives a list of answers. */
void vk_ask_plain_scan(struct vk_layout *l, struct vk_request *r, const struct read *q);
void vk_ask_scans(struct vk_layout *l, struct vk_request *r, const struct read *reads,
                  size_t n, const struct vk_attempt *at);
/* Takes an answer: of the server's own command (plain), or of the function. */
MUST_USE belay_rc vk_take_scan(struct read *q, const struct vk_reply *reply, bool plain,
                               struct vk_attempt *at, int64_t asked_us,
                               struct belay_arena *a, struct belay_error *err);

/* The end of a range. */
void vk_add_rank(struct vk_args *l, int64_t rank);

/* --- plan_args.c, plan_ranks.c, plan_rest.c, plan_scans.c: a plan as arguments --- */

/* A small table: what belongs to a name. */
struct vk_names {
    struct vk_name *slots;
    size_t n_slots; /* a power of two */
};
struct vk_name {
    struct bytes name; /* ptr NULL: free */
    uint64_t hash;
    size_t value; /* SIZE_MAX at first */
    void *what;   /* NULL at first */
};
/* Room for so many; false: no memory. */
MUST_USE bool vk_names_init(struct vk_names *t, size_t n, struct belay_arena *a);
/* The entry of a name, made if need be. */
struct vk_name *vk_names_at(struct vk_names *t, struct bytes name, uint64_t hash);

/* Effects of one index, at most VK_GROUP_MAX of them. */
#define VK_GROUP_MAX 1000
struct vk_group {
    struct vk_group *next;
    struct bytes key;
    size_t number;                           /* as the function counts them */
    struct vk_args adds, moves;              /* rank, member */
    struct vk_args removes;                  /* members */
    struct vk_args move_ranks, remove_ranks; /* old ones */
};

/* Groups of one effect have a short form, by its kind; in the order in which the function
 * has them. */
enum vk_group_class { VK_ONE_ADD, VK_ONE_REMOVE, VK_ONE_MOVE, VK_GROUP };
#define VK_GROUP_CLASSES 4

/* Where a rank effect stands: in which group, and which one of its kind. */
struct vk_spot {
    struct vk_group *group;
    size_t at;
};

/* A stream that the plan touches. */
struct vk_tail {
    struct vk_tail *next;
    struct bytes key;
    int64_t before; /* the entry that must be the last one; < 0: none need be */
    int64_t last;   /* the plan's own */
};

#define VK_GUARD_CLASSES 5 /* by what they go along with: plan_args.c */

/* What there is beside rows and ranks. */
enum vk_rest { VK_NO_REST, VK_REST_ENTRY, VK_REST_ALL, VK_REST_ITEM };

struct vk_plan {
    struct vk_store *s;
    const struct plan *plan;
    struct vk_layout keys;
    struct belay_arena *arena;
    size_t *order; /* guards, as the function counts them */
    struct vk_args head, row_keys, row_vers, puts;
    struct vk_args rest_head, nulls, indexes, streams, entries, counters, feeds, chunks;
    struct vk_args holds, wake, scans;
    size_t n_of[VK_GUARD_CLASSES];        /* guards */
    size_t n_groups_of[VK_GROUP_CLASSES]; /* of ranks */
    uint8_t *put_sizes; /* two of each put: its arguments, and those that it shares */
    enum vk_rest rest;
    size_t n_puts, n_nulls, n_tails, n_entries, n_counters, n_feeds, n_chunks, n_holds;
    struct vk_names rows, names;
    size_t n_rows; /* guards that are in `rows` */
    struct vk_group *groups, **groups_end;
    struct vk_spot *spots; /* by effect; NULL: no rank effects */
    struct vk_tail *tails, **tails_end;
    size_t *effect_of; /* by guard: its row effect, or SIZE_MAX */
    bool wide;         /* the numbers of its head are large */
    bool gap;          /* a log is wrong within the plan */
    bool no_memory;
};

/* Makes all the arguments; `misuse` for an effect on a row without a guard. */
MUST_USE belay_rc vk_plan_make(struct vk_plan *p, struct belay_error *err);
void vk_plan_rest(struct vk_plan *p); /* all but the rows */
/* The guard of a row; SIZE_MAX: there is none, or no memory. */
size_t vk_plan_guard(struct vk_plan *p, const struct row_ref *ref);
void vk_plan_add_rank(struct vk_plan *p, size_t effect);
void vk_plan_add_groups(struct vk_plan *p); /* when all rank effects are there */
void vk_plan_scans(struct vk_plan *p);
/* The command; it also gives back what the attempt holds. */
void vk_plan_send(struct vk_plan *p, const struct vk_attempt *at, struct vk_request *r);

/* --- collect.c: the keys of a namespace --- */

typedef belay_rc vk_key_visit(void *arg, const struct vk_reply *keys, bool *stop,
                              struct belay_error *err);
/* Every key that begins with `beginning`, on the node of the namespace, some at a time; a
 * key may come twice.  *all: there are no more. */
MUST_USE belay_rc vk_each_key(struct vk_store *s, struct bytes ns,
                              struct bytes beginning, vk_key_visit *visit, void *arg,
                              bool *all, struct belay_error *err);

/* A key and what is in it: pages of answers. */
struct vk_cell {
    struct bytes key;
    struct vk_place place;
    uint64_t hash;
    struct vk_page *pages, **end;
    bool done;
    uint64_t at_major, at_minor; /* how far it was read: a place, or an id */
};
struct vk_page {
    struct vk_page *next;
    struct vk_reply reply;
};

/* All cells of a namespace in the order of walk(), at one moment.  `contention` when it
 * never stands still. */
struct vk_cells {
    struct belay_arena arena;
    struct vk_cell *cell;
    size_t n;
};
MUST_USE belay_rc vk_collect(struct vk_store *s, struct bytes ns, struct vk_cells *out,
                             struct belay_error *err);
void vk_cells_release(struct vk_cells *c);

#endif /* STORE_DRIVERS_VALKEY_SHAPES_H */
