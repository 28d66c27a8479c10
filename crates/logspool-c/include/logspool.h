/* logspool: logging that costs a program nothing and loses nothing. The C interface, ABI major 1.
 *
 * Every function may be called by any thread at any time, unless its comment says otherwise, and never throws, aborts
 * or writes into memory of the caller that its comment does not name. Texts are UTF-8; ill-formed bytes are shown as
 * U+FFFD. A text with a length need not end with NUL. The library copies every text and every struct that it is given:
 * the caller may free them when the call returns. Results of the library belong to the library and stay valid as long
 * as the comment says.
 *
 * Ids of sinks, loggers and sites are valid for the life of the process and in all its forked children, unless the
 * program closes them. 0 is no id: a function that returns it has failed, and logspool_last_error() says why.
 *
 * The first definition or record begins the queue of the process and installs the code that writes queued records at
 * the end: at exit(), before a signal such as SIGTERM ends the process, and for at most 200 ms in a crash. Records that
 * are accepted survive SIGKILL: the next start that opens the same file, `logspool recover` or the service delivers
 * them.
 *
 * In a signal handler, logspool_emit, logspool_text, logspool_reserve and logspool_commit may be called. A call that
 * interrupts another call of its thread is refused and counted. A thread's first record, and a record that has to wait
 * for room, allocate memory: in a handler, log only on threads that have logged.
 */
#ifndef LOGSPOOL_H
#define LOGSPOOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header. The major version changes with the meaning of a function, the minor one with additions. */
#define LOGSPOOL_ABI_MAJOR 1
#define LOGSPOOL_ABI_MINOR 2

/* Results. Negative values are errors: logspool_last_error() has the text. */
enum {
    LOGSPOOL_OK = 0,        /* done; a record is accepted */
    LOGSPOOL_DISABLED = 1,  /* the logger's level is above the record's: nothing was logged */
    LOGSPOOL_REFUSED = -1,  /* the record is refused and counted: no room, or an interrupted call */
    LOGSPOOL_INVALID = -2,  /* an argument is NULL, out of range or ill-formed */
    LOGSPOOL_UNKNOWN = -3,  /* there is no such id */
    LOGSPOOL_FAILED = -4,   /* the system failed, or a limit of the process is reached */
    LOGSPOOL_TIMEOUT = -5,  /* the time is up; the rest stays queued */
    LOGSPOOL_PANIC = -6,    /* a bug of the library; nothing was logged */
    LOGSPOOL_VERSION = -7   /* another copy of the library owns the queue, with another major version */
};

/* Levels, as Python's logging numbers them. Any number from 1 to 65535 is a level. */
enum {
    LOGSPOOL_TRACE = 5,
    LOGSPOOL_DEBUG = 10,
    LOGSPOOL_INFO = 20,
    LOGSPOOL_WARNING = 30,
    LOGSPOOL_ERROR = 40,
    LOGSPOOL_CRITICAL = 50
};

/* The language of a message template. */
enum {
    LOGSPOOL_PERCENT = 0,  /* Python's `msg % args` */
    LOGSPOOL_FMT = 1,      /* std::format and {fmt} */
    LOGSPOOL_RUST = 2,     /* Rust's format! */
    LOGSPOOL_PLAIN = 3     /* the template is the text */
};

typedef uint32_t logspool_id;

/* Sets options of the process's queue: a JSON object with options of Python's `logspool.install()` by name, for
 * example {"queue_bytes": 1048576, "durability": "process", "blocking_levels": [40, 50]}. NULL or "{}" sets the
 * defaults. Call it before the first definition; later only some options may change.
 * Errors: LOGSPOOL_INVALID for text that is not such an object, for an unknown option (the text names the
 * nearest), for a value out of its range, and for an option that is fixed by now. Nothing is changed then. */
int logspool_configure(const char *options_json);

/* Opens a sink. `address` is one of:
 *   - the path of a file, which is created if it is missing, and appended to;
 *   - "stdout", "stderr" or "fd:N": a descriptor of the program, which stays open;
 *   - "tcp://HOST:PORT", "tls://...", "unix://PATH": a logspool service, or one of several with one store:
 *     "tcp://a:9020,b:9020";
 *   - a JSON object {"kind": KIND, OPTION: VALUE, ...} with a kind of sink and its options by name; "fd": N makes
 *     a file sink write through a duplicate of that descriptor.
 * `format_json` is the form of a line, or NULL for "%(asctime)s %(levelname)s %(name)s %(message)s". It is a JSON
 * object with any of:
 *   "template": text; "style": "%" (default), "{" or "$"; "date_format": text of strftime; "utc": true;
 *   "milliseconds": text such as "%s,%03d", or null; "terminator": text; "level_names": {"20": "info", ...};
 *   "pattern": text such as "[{time:%H:%M:%S.%3f}] [{level:<5}] {message} {fields}" in place of "template"; the
 *   names in braces are in docs/reference/templates.md; "level_words": "upper" (INFO), "lower", "short" (INF) or
 *   "letter" (I);
 *   "level": 30 or "warning": the sink takes only records of this level and above;
 *   "escape_control": true shows control characters and line ends in the texts of a record as \x1b and \n, so that
 *   no text can forge a line or control a terminal; the default is true for "stdout", "stderr" and a descriptor
 *   that is no file, and false elsewhere; JSON escapes by its own rules;
 *   "json": {"KEY": "ATTRIBUTE", ...} makes a JSON object a line in place of "template", "extras": true appends
 *   all key-values to it.
 * Sinks with the same file, kind and options share the file: lines are in one order.
 * Returns the sink's id. Errors: 0 if the text is ill-formed (the error names the place), or if the file cannot be
 * opened. */
logspool_id logspool_sink_open(const char *address, const char *format_json);

/* Makes a logger, or finds the one with the same name, and gives it `count` sinks. Calls whose level is below
 * `level` log nothing. The level of an existing logger changes; its sinks change if `count` is not 0.
 * Returns the logger's id. Errors: 0 for an unknown sink, a NULL name, or more than 64 sinks. */
logspool_id logspool_logger(const char *name, uint16_t level, const logspool_id *sinks, size_t count);

/* Finds a logger by its name. Changes nothing. 0: no logger has this name; the error says so. */
logspool_id logspool_logger_find(const char *name);

/* Takes back one call of logspool_logger with this logger. The last one closes the logger: its queued records are
 * written under its name, its id means nothing any more, and its place is free. A process has at most 2,047 open
 * loggers, and any number one after the other. No other thread may log to it, or to a copy of its id, during the
 * call or later. LOGSPOOL_UNKNOWN: there is no such logger. Not for signal handlers. */
int logspool_logger_close(logspool_id logger);

/* Closes a sink: no logger can get it any more. It is closed for good when its last logger is closed, or has other
 * sinks, and its queued records are written; the call does not wait for that, logspool_flush does. A process has
 * at most 127 open sinks, and any number one after the other. LOGSPOOL_UNKNOWN: there is no such sink. Not for
 * signal handlers. */
int logspool_sink_close(logspool_id sink);

/* Changes the level of a logger at run time. */
int logspool_logger_level(logspool_id logger, uint16_t level);

/* Records of the site are logged at any level of their logger: the program kept them back until
 * it wanted them. */
#define LOGSPOOL_SITE_ALWAYS 1

/* A call site. Zero the struct first and set `size`. Fields after `level` may be zero. */
struct logspool_site_info {
    uint32_t size;         /* sizeof(struct logspool_site_info) */
    uint32_t line;         /* line of the call */
    const char *file;      /* source file; NULL is "" */
    const char *function;  /* function; NULL is "" */
    const char *message;   /* template; NULL: each record carries its text as the first argument */
    uint16_t level;        /* level of the site's records */
    uint8_t grammar;       /* LOGSPOOL_PERCENT, ... */
    uint8_t flags;         /* 0 or LOGSPOOL_SITE_ALWAYS */
    uint32_t type_count;   /* number of `types`; 0 if they are not fixed */
    const uint8_t *types;  /* LOGSPOOL_ARG_* of each argument, to check the template against; NULL if not fixed: only
                            * the form of the template is checked, and an argument that does not fit leaves `<?>` */
};

/* Defines a call site. Call it once for each site, for example by a static variable: each call uses an id of the
 * 8,192 ids of the process. Above this number records carry their site, which costs some 100 bytes each.
 * Returns the site's id. Errors: 0 for a bad template; the error has the place in the text. */
logspool_id logspool_site(const struct logspool_site_info *site);

/* Types of arguments. */
enum {
    LOGSPOOL_ARG_NONE = 1,     /* None */
    LOGSPOOL_ARG_BOOL = 2,     /* i: 0 or 1 */
    LOGSPOOL_ARG_INT = 4,      /* i */
    LOGSPOOL_ARG_DOUBLE = 5,   /* d */
    LOGSPOOL_ARG_TEXT = 6,     /* p, length: UTF-8 */
    LOGSPOOL_ARG_BYTES = 7,    /* p, length */
    LOGSPOOL_ARG_RENDERED = 9, /* p, length: text that replaces its placeholder unchanged */
    LOGSPOOL_ARG_BIG_INT = 10, /* p, length: an integer in decimal digits, of up to 128 bits */
    LOGSPOOL_ARG_UINT = 11,    /* u */
    LOGSPOOL_ARG_CHAR = 12,    /* u: a Unicode code point */
    LOGSPOOL_ARG_FLOAT = 13,   /* f */
    LOGSPOOL_ARG_POINTER = 14, /* p */
    /* Parts of a record that are no arguments of its template. They may be anywhere in the array. */
    LOGSPOOL_ARG_EXCEPTION = 0x45, /* p, length: text below the message */
    LOGSPOOL_ARG_STACK = 0x46,     /* p, length: text below the exception */
    LOGSPOOL_ARG_KEY = 0x47        /* p, length: a key; the next argument is its value */
};

struct logspool_arg {
    uint32_t type;    /* LOGSPOOL_ARG_* */
    uint32_t length;  /* bytes at p */
    union {
        int64_t i;
        uint64_t u;
        double d;
        float f;
        const void *p;
    } value;
};

/* Logs one record: the site's template with `count` arguments, at the site's level. Does not format and makes no
 * system call, unless the lane of the thread is full; then it waits as the options say for the level. Returns
 * LOGSPOOL_OK, LOGSPOOL_DISABLED, LOGSPOOL_REFUSED, or an error; nothing is logged then. */
int logspool_emit(logspool_id logger, logspool_id site, const struct logspool_arg *args, size_t count);

/* Logs one record with a finished text, which is not parsed, at any level. `file` and `function` may be NULL. The
 * place is sent with each record; loggers that see many records of one place are better served by a site. */
int logspool_text(logspool_id logger, uint16_t level, const char *text, size_t length, const char *file, uint32_t line,
                  const char *function);

/* Reserves room in the thread's lane for a record with `value_bytes` bytes of values (below), and stamps it.
 * Returns where to store exactly these bytes; NULL if nothing is to be stored: the level is disabled or the record
 * is refused (logspool_last_status() says which). Until logspool_commit() the thread may only store the values: no
 * call, no lock, no fork, nothing that throws. The values are trusted: ill-formed ones end the record there. */
void *logspool_reserve(logspool_id logger, logspool_id site, size_t value_bytes);

/* Publishes the record of logspool_reserve(). Waits if the options ask for durability. LOGSPOOL_INVALID: no record
 * is open. */
int logspool_commit(void);

/* Drops the record of logspool_reserve(); nothing is logged. LOGSPOOL_INVALID: no record is open. */
int logspool_abandon(void);

/* The values of a record, in native byte order and without padding: first the parts that are no arguments, then the
 * arguments. Each is one byte and its payload:
 *   LOGSPOOL_ARG_NONE: nothing; LOGSPOOL_TAG_TRUE, LOGSPOOL_TAG_FALSE: nothing; INT, UINT, POINTER: 8 bytes;
 *   DOUBLE: 8; FLOAT: 4; CHAR: 4; TEXT, BYTES, RENDERED, BIG_INT, EXCEPTION, STACK: 4 bytes of length and the bytes;
 *   KEY: 4 bytes of length, the bytes, and then one value; LOGSPOOL_TAG_MESSAGE: length and the finished text, which
 *   replaces the template; LOGSPOOL_TAG_THREAD: 8 bytes, and LOGSPOOL_TAG_THREAD_NAME:
 *   length and the name in UTF-8; both needed if logspool_handle.needs says so. */
enum {
    LOGSPOOL_TAG_TRUE = 2,
    LOGSPOOL_TAG_FALSE = 3,
    LOGSPOOL_TAG_MESSAGE = 0x40,
    LOGSPOOL_TAG_THREAD = 0x41,
    LOGSPOOL_TAG_THREAD_NAME = 0x42
};

/* Waits until all records that were logged before the call are handed to the system. `timeout_seconds` < 0 waits
 * for ever. LOGSPOOL_TIMEOUT: some are still queued. Not for signal handlers. */
int logspool_flush(double timeout_seconds);

/* Writes everything that is queued, for at most `timeout_seconds`. Call it before a process ends by _exit();
 * exit() and returning from main() do it by themselves, within the option shutdown_timeout. The program may
 * continue to log. LOGSPOOL_TIMEOUT: the rest is left to the next start. */
int logspool_drain(double timeout_seconds);

/* Writes counters as a JSON object with a final NUL into `buffer` of `bytes` bytes: "offered", "accepted",
 * "refused" by reason, "blocked_calls", "in_lanes", and for each sink "accepted", "written", "queued", "dropped"
 * by reason, "error".
 * Returns the length of the whole text without the NUL, as snprintf does; the text is cut if it is longer.
 * `buffer` may be NULL if `bytes` is 0. Negative: an error. */
long logspool_stats(char *buffer, size_t bytes);

/* Delivers the records that dead processes left in a queue folder to their files; NULL is the folder of this
 * process.
 * Returns the number of delivered records, or an error. May take as long as the files need. */
long long logspool_recover(const char *folder);

/* Text of the last error of the calling thread; "" without an error. Valid until the thread's next call. */
const char *logspool_last_error(void);

/* Result of the last call of the calling thread that returned NULL, 0 or a result. */
int logspool_last_status(void);

/* Generation of the process: it changes in a forked child, and when a sink is closed. */
uint64_t logspool_generation(void);

/* ---- For headers that write into the lane without a call ----------------------------------------------------------
 *
 * logspool_lane_view() gives the calling thread its lane. The list in crates/logspool-lanes/src/lane/cursor.rs has
 * the rules of a writer. In short, for a record of `length` bytes (24 of head, then the values), with
 * needed = (length + 7) & ~7:
 *   1. slow path (logspool_reserve, values, logspool_commit) if view->version != LOGSPOOL_VIEW_VERSION, if flags != 0,
 *      if generation != *generation_word, or if needed > bytes / 4;
 *   2. *busy_word must be 0 (else this call interrupts another one: slow path, which counts it); store 1 (relaxed),
 *      compiler fence;
 *   3. compare generation and *generation_word (relaxed) again, and view->pipeline with the upper half of the ids of
 *      logger and site. If one differs: *busy_word = 0 (release), slow path;
 *   4. offset = (head - start) & (bytes - 1); skipped = needed > bytes - offset ? bytes - offset : 0. There is room if
 *      head + skipped + needed + (level < 40 ? bytes / 8 : 0) <= limit. If not: *busy_word = 0 (release), slow path;
 *   5. if skipped >= 24, store at ring + offset a head with length `skipped` and LOGSPOOL_FLAG_FILLER; filler below 24
 *      bytes stays unwritten. The record goes to offset 0 then;
 *   6. store head (with the stamp, read now) and values; nothing that calls, throws or locks. Store the head field by
 *      field: a copy of a struct that was just filled waits until all earlier stores have reached the cache;
 *   7. head += skipped + needed in the view; store it to *head_word (release); *busy_word = 0 (release);
 *   8. if level >= 40 or head >= wake_at: logspool_wake(level).
 * After a slow path the view is up to date again, or logspool_lane_view() returns another one: ask again when
 * generation differs from *generation_word. */

#define LOGSPOOL_VIEW_VERSION 1
#define LOGSPOOL_FLAG_FILLER 2
#define LOGSPOOL_CLOCK_MONOTONIC 1 /* stamp: CLOCK_MONOTONIC in nanoseconds */
#define LOGSPOOL_CLOCK_TSC 2       /* stamp: rdtsc */

struct logspool_view {
    uint32_t version;                /* LOGSPOOL_VIEW_VERSION */
    uint32_t flags;                  /* not 0: slow path only */
    uint64_t pipeline;               /* ids are valid under this number only */
    uint64_t generation;             /* generation in which the lane was last checked */
    const uint64_t *generation_word; /* current generation; atomic */
    uint64_t *head_word;             /* published position; atomic */
    uint32_t *busy_word;             /* 1 while a record is being written; atomic */
    unsigned char *ring;             /* the ring, of `bytes` bytes */
    uint64_t start;                  /* position at which the ring begins */
    uint64_t bytes;                  /* a power of two */
    uint64_t head;                   /* position after the last record */
    uint64_t limit;                  /* position up to which the ring is free */
    uint64_t wake_at;                /* see step 8 */
    uint32_t clock;                  /* LOGSPOOL_CLOCK_* */
    uint32_t thread;                 /* kernel's id of the thread, for LOGSPOOL_TAG_THREAD */
};

/* Head of a record. */
struct logspool_head {
    uint32_t length;  /* head and values, without padding */
    uint32_t site;    /* lower half of the site's ids */
    uint32_t route;   /* lower half of the logger's ids */
    uint16_t level;
    uint16_t flags;
    uint64_t ticks;   /* the stamp */
};

/* Current ids of a logger or a site, and what its calls look at. */
struct logspool_handle {
    uint64_t ids;    /* atomic: upper half the pipeline's number (its lower 32 bits), lower half the id */
    uint32_t level;  /* atomic: of a logger the lowest level that is logged; of a site the level of its records */
    uint32_t needs;  /* of a logger: LOGSPOOL_NEEDS_*, any of them; atomic */
};

#define LOGSPOOL_NEEDS_THREAD 1      /* a format shows the thread: send LOGSPOOL_TAG_THREAD with each record */
#define LOGSPOOL_NEEDS_THREAD_NAME 2 /* a format shows its name: send LOGSPOOL_TAG_THREAD_NAME with each record */

/* The lane of the calling thread; NULL if it has no lane. Valid as long as the thread lives, and written by the
 * library and the header on that thread only. */
struct logspool_view *logspool_lane_view(void);

/* Handle of a logger, valid for the life of the process; NULL for an unknown id. */
const struct logspool_handle *logspool_logger_handle(logspool_id logger);

/* As logspool_logger_handle, of a site. */
const struct logspool_handle *logspool_site_handle(logspool_id site);

/* Wakes the collector, after a record of this level: step 8. */
void logspool_wake(uint16_t level);

/* ---- One core in a process ---------------------------------------------------------------------------------------
 *
 * The first copy of the library that begins a queue publishes its table; the functions above of every later copy call
 * through it. Python's `logspool._native._C_API` is a capsule of that name with the same table, for extension modules
 * that link nothing. Compare `major`, and `size` with offsetof before a function of a later minor version is called. */

struct logspool_api {
    uint32_t major;
    uint32_t minor;
    uint32_t size; /* bytes of this struct */
    uint32_t reserved;
    int (*configure)(const char *);
    logspool_id (*sink_open)(const char *, const char *);
    logspool_id (*logger)(const char *, uint16_t, const logspool_id *, size_t);
    int (*logger_level)(logspool_id, uint16_t);
    logspool_id (*site)(const struct logspool_site_info *);
    int (*emit)(logspool_id, logspool_id, const struct logspool_arg *, size_t);
    int (*text)(logspool_id, uint16_t, const char *, size_t, const char *, uint32_t, const char *);
    void *(*reserve)(logspool_id, logspool_id, size_t);
    int (*commit)(void);
    int (*abandon)(void);
    int (*flush)(double);
    int (*drain)(double);
    long (*stats)(char *, size_t);
    long long (*recover)(const char *);
    const char *(*last_error)(void);
    int (*last_status)(void);
    uint64_t (*generation)(void);
    struct logspool_view *(*lane_view)(void);
    const struct logspool_handle *(*logger_handle)(logspool_id);
    const struct logspool_handle *(*site_handle)(logspool_id);
    void (*wake)(uint16_t);
    /* For other copies of the library only: the queue moves to another copy. */
    long long (*hand_over)(void);
    void (*replay)(const struct logspool_api *);
    logspool_id (*restore_sink)(const char *, const char *);
    logspool_id (*restore_logger)(const char *, const logspool_id *, size_t, const struct logspool_handle *);
    logspool_id (*restore_site)(const struct logspool_site_info *, const struct logspool_handle *);
    /* Since 1.1 */
    logspool_id (*logger_find)(const char *);
    /* Since 1.2 */
    int (*logger_close)(logspool_id);
    int (*sink_close)(logspool_id);
    /* For other copies of the library only: the queue moves to another copy. */
    logspool_id (*restore_sink_as)(logspool_id, int, const char *, const char *);
    logspool_id (*restore_logger_as)(logspool_id, uint32_t, const char *, const logspool_id *, size_t,
                                     const struct logspool_handle *);
};

/* The table that this copy of the library calls through. Never NULL. */
const struct logspool_api *logspool_api_table(void);

#ifdef __cplusplus
}
#endif

#endif
