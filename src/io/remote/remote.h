/* Remote files: what the files of this folder share. One lock guards the cache, the queue of the fetcher and
 * what a file counts; one thread, the fetcher, talks to the servers. */
#ifndef COFFER_IO_REMOTE_REMOTE_H
#define COFFER_IO_REMOTE_REMOTE_H

#include "coffer/source.h"
#include "io/remote/address.h"
#include "io/remote/http.h"
#include "io/remote/http_answer.h"

#include <pthread.h>

#define COFFER__REMOTE_BLOCK ((size_t)16 * 1024) /* what the cache holds and requests are aligned to */
#define COFFER__REMOTE_MAX_TRIES 10
#define COFFER__REMOTE_OPENING ((size_t)64 * 1024) /* what the first request asks for */

/* Settings of the process. */
typedef struct coffer__remote_settings {
    uint64_t cache_bytes;
    unsigned parallel;    /* requests at once */
    unsigned deadline_ms; /* longest time without any progress of a read */
    bool one_version;     /* a file that was opened once is not opened again */
    bool spool;           /* blocks of large files go to an unnamed temporary file */
    bool download;        /* where a server has no ranges, fetch the whole file */
    char *cache_folder;   /* or NULL */
} coffer__remote_settings;

/* The ranges that a reader has announced, joined where they nearly touch. Requests run ahead of its reads
 * until all are made. Positions count bytes of the ranges, as if they followed one another. */
typedef struct coffer__read_plan {
    struct coffer__planned {
        uint64_t offset, len;
        uint64_t position; /* of its first byte */
    } * ranges;
    size_t count;
    size_t next;      /* the range that is asked for next */
    uint64_t asked;   /* position of the first byte that was not asked for */
    uint64_t reached; /* position of the reader */
} coffer__read_plan;

#define COFFER__REMOTE_STREAMS 4

/* Reads that follow one another, from one thread or several. */
typedef struct coffer__read_stream {
    uint64_t begin, front; /* where it began, and the end of what was read */
    uint64_t ahead_until;  /* end of what was asked for ahead */
    uint64_t last_read;    /* number of its last read */
    uint64_t reads;
} coffer__read_stream;

typedef struct coffer__remote_file coffer__remote_file;
struct coffer__remote_file {
    coffer__remote_address address;
    uint64_t id;   /* in the cache */
    uint64_t size; /* known once it is open, like the members below */
    char etag[160];
    char modified[48];
    bool is_pinned;                  /* the server promises to notice a change */
    struct coffer__disk_cache *disk; /* or NULL */

    coffer__url moved; /* where redirects led; empty when nowhere. Used by the fetcher alone. */
    bool has_moved;
    char *asked_as;                 /* the address, for files that are kept; else NULL */
    coffer__remote_file *next_kept; /* under the lock */
    unsigned users; /* sources, fetches under way, and the list of kept files; under the lock */
    bool closed;    /* under the lock */
    coffer__read_stream streams[COFFER__REMOTE_STREAMS]; /* under the lock */
    uint64_t read_count;                                 /* under the lock */
    coffer__read_plan plan;                              /* under the lock */
    coffer_error failure;                                /* of the last fetch that failed; under the lock */
};

/* How long a request has been waited for, and when it is made again. */
typedef struct coffer__remote_patience {
    unsigned tries; /* since the last byte that came */
    uint64_t progress_ms, resume_ms, pause_ms;
} coffer__remote_patience;

/* A range of a file on its way. */
typedef struct coffer__remote_fetch coffer__remote_fetch;
struct coffer__remote_fetch {
    coffer__remote_file *file;
    uint64_t first;
    size_t len;
    bool is_opening;  /* the size is not known yet: fewer bytes are an answer, too */
    bool wants_whole; /* no range: the whole file, of any size */
    bool is_ahead;    /* nobody waits for it yet */
    void *owner;
    /* Bytes of the range, from its beginning on; on the fetcher's thread, without the lock. False: they
     * cannot be kept, and error says why. */
    bool (*take)(coffer__remote_fetch *fetch, const uint8_t *bytes, size_t len);
    /* On the fetcher's thread, with the lock. */
    void (*ended)(coffer__remote_fetch *fetch);

    /* The result: error.status is COFFER_OK when all bytes were taken. */
    coffer_error error;
    uint64_t got;
    coffer__http_answer answer;

    /* Used by the fetcher alone. */
    coffer__http_exchange exchange;
    coffer__remote_request request;
    unsigned redirects;
    coffer__remote_patience patience;
    bool is_accepted, is_refused, is_running, has_new_region;
    char words[512]; /* the beginning of a body that is not data */
    size_t words_len;
    coffer__remote_fetch *next;
};

extern pthread_mutex_t coffer__remote_lock;
extern pthread_cond_t coffer__remote_progress; /* a fetch has ended */

const coffer__remote_settings *coffer__remote_settings_now(void);

/* Hands a fetch to the fetcher; with the lock. The fetch and its file live until `ended` was called. */
coffer_status coffer__remote_submit(coffer__remote_fetch *fetch, coffer_error *err);
/* Drops fetches of a file that nobody waits for any more; with the lock. */
void coffer__remote_forget(coffer__remote_file *file);
/* With the lock. */
void coffer__remote_file_release(coffer__remote_file *file);
/* Milliseconds of a clock that never goes back. */
uint64_t coffer__remote_clock(void);
/* Sets when a request is made again, after a pause that grows. False: the tries or the time are used up.
 * retry_after : seconds that the server asked for, or 0. */
bool coffer__remote_pause(coffer__remote_patience *patience, unsigned max_tries, unsigned retry_after);
/* True for answers that say "later": 408, 429 and errors of the server itself. */
bool coffer__remote_is_busy(int status);
/* Text between two tags of S3's answers, in plain characters. */
bool coffer__remote_find_between(char *out, size_t size, const char *text, const char *open,
                                 const char *close);
/* The words for an answer that is a refusal. what : "the server cannot give the file". */
coffer_status coffer__remote_fail_status(coffer_error *err, const coffer__http_answer *answer,
                                         const char *body, const char *denied, const char *what);
/* Continues in the region that S3's answer has named; false when it named none, or the present one. */
bool coffer__remote_learn_region(coffer__remote_address *address, const coffer__http_answer *answer);

/* Decides what an answer means. True: the body is the data that was asked for. False with an error, or with
 * COFFER_OK when the request has to be made again (fetch->patience says when). */
bool coffer__remote_accepts(coffer__remote_fetch *fetch);
/* After the end of an exchange. True: the fetch has ended, and its error is set. False: another exchange
 * follows. */
bool coffer__remote_has_ended(coffer__remote_fetch *fetch);

/* The whole address of a name that coffer_remote_name has given; the name itself for others. */
const char *coffer__remote_address_behind(const char *name);

/* Bytes of a block; the last one of a file may be shorter. */
size_t coffer__remote_block_length(const coffer__remote_file *file, uint64_t block);
/* Submits a fetch and waits until its `ended` has set *has_ended; with the lock. */
coffer_status coffer__remote_wait_for(coffer__remote_fetch *fetch, const bool *has_ended, coffer_error *err);
/* A read of bytes that fit no frame, or of a file whose size is not known yet. */
typedef struct coffer__direct_read {
    coffer__remote_fetch fetch;
    uint8_t *out;
    bool has_ended;
} coffer__direct_read;
void coffer__direct_read_init(coffer__direct_read *read, coffer__remote_file *file, uint8_t *out,
                              uint64_t offset, size_t len);
/* Operations of the source; the context is a coffer__remote_file. */
coffer_status coffer__remote_read_at(void *context, void *out, uint64_t offset, size_t len,
                                     coffer_error *err);
void coffer__remote_prefetch(void *context, const coffer_range *ranges, size_t count);

/* Opens http, https, s3 and hf. */
coffer_status coffer__source_over_remote(coffer_source **out, const char *name, coffer_error *err);

#endif
