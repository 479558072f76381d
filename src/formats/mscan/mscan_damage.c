/* Finding the records of a file that is shorter than its header says. Three things happen to such files: the
 * end is missing (records start after the metadata), the Python MScanWriter wrote its final metadata over the
 * first records (records end with the file), or bytes are missing in between (both, around a gap).
 *
 * A record makes sense when its parameter has a name and its token is in a sequence. Bytes that are cut into
 * records in the wrong place may make sense too, so a place is accepted only when no other one explains the
 * file as well. */
#include "formats/mscan/mscan_damage.h"

#include "base/fail.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <string.h>

#define BATCH 512       /* records read at once */
#define FEW_RECORDS 4   /* fewer do not prove where records start */
#define MOSTLY_RIGHT 90 /* percent of records that make sense in a file with other damage */
#define MOSTLY_WRONG 50

typedef struct search {
    coffer_source *source;
    const coffer__mscan_header *header;
    const coffer__mscan_metadata *metadata;
    uint64_t size;    /* of the file */
    uint64_t missing; /* bytes */
} search;

/* ---- How much the JSON grew ---- */

/* Past the string that begins at `next`; the text is valid JSON. */
static const char *skip_string(const char *next)
{
    for (next++; *next != '"'; next++) {
        if (*next == '\\')
            next++;
    }
    return next + 1;
}

/* Past the array or object that begins at `next`. */
static const char *skip_nested(const char *next)
{
    size_t depth = 0;
    do {
        if (*next == '"') {
            next = skip_string(next);
            continue;
        }
        depth += *next == '[' || *next == '{';
        depth -= *next == ']' || *next == '}';
        next++;
    } while (depth > 0);
    return next;
}

static const char *skip_space(const char *next)
{
    return next + strspn(next, " \t\r\n");
}

typedef struct list_span {
    size_t value;  /* bytes of the list */
    size_t member; /* bytes of comma, key and list, with the white space between them */
} list_span;

/* The space that "sequences" takes in the text; 0, 0 without such an array. */
static list_span sequences_span(const coffer__mscan_metadata *metadata)
{
    static const char key[] = "\"sequences\"";
    const char *next = skip_space(metadata->text) + 1, *end = metadata->text + metadata->text_len;
    const char *member = next; /* after the brace, or the comma before the key */
    while (next < end) {
        if (*next == '"') {
            const char *start = next;
            next = skip_string(next);
            if ((size_t)(next - start) != sizeof key - 1 || memcmp(start, key, sizeof key - 1) != 0)
                continue;
            start = skip_space(next);
            if (*start != ':')
                continue; /* a value, not a key */
            start = skip_space(start + 1);
            if (*start != '[')
                return (list_span){ 0, 0 };
            const char *after = skip_nested(start);
            return (list_span){ (size_t)(after - start), (size_t)(after - member) };
        }
        if (*next == ',')
            member = next;
        next = *next == '[' || *next == '{' ? skip_nested(next) : next + 1;
    }
    return (list_span){ 0, 0 };
}

/* The MScanWriter writes its JSON first with an empty list of sequences or without the key, then at the end
 * with the full list. The file then lacks exactly the bytes that the JSON grew by. */
static bool grew_by_sequences(const search *find)
{
    list_span span = sequences_span(find->metadata);
    return span.value > 2 && (find->missing == span.value - 2 || find->missing == span.member);
}

/* ---- Whether records make sense ---- */

static bool makes_sense(const search *find, const uint8_t *record)
{
    return coffer__mscan_load_token(record) < find->metadata->total_tokens &&
           coffer__mscan_find_param(find->metadata, coffer__mscan_load_param(record));
}

/* How many of `count` records from `offset` on make sense; *run : those before the first that does not. */
static coffer_status count_sense(uint64_t *out, uint64_t *run, const search *find, uint64_t offset,
                                 uint64_t count, coffer_error *err)
{
    uint8_t scratch[BATCH * COFFER__MSCAN_RECORD_SIZE];
    uint64_t sense = 0, unbroken = 0;
    for (uint64_t done = 0; done < count;) {
        size_t some = count - done < BATCH ? (size_t)(count - done) : BATCH;
        const uint8_t *records = NULL;
        coffer_status status = coffer__mscan_fetch(&records, find->source, offset, done, some, scratch, err);
        if (status)
            return status;
        for (size_t i = 0; i < some; i++) {
            bool good = makes_sense(find, records + i * COFFER__MSCAN_RECORD_SIZE);
            unbroken += good && unbroken == done + i;
            sense += good;
        }
        done += some;
    }
    *out = sense;
    *run = unbroken;
    return coffer_source_intact(find->source, err);
}

/* How many records before the end of the file make sense, up to the last that does not; at most `count`. */
static coffer_status count_from_end(uint64_t *out, const search *find, uint64_t count, coffer_error *err)
{
    uint8_t scratch[BATCH * COFFER__MSCAN_RECORD_SIZE];
    uint64_t run = 0;
    bool unbroken = true;
    while (unbroken && run < count) {
        size_t some = count - run < BATCH ? (size_t)(count - run) : BATCH;
        uint64_t offset = find->size - (run + some) * COFFER__MSCAN_RECORD_SIZE;
        const uint8_t *records = NULL;
        coffer_status status = coffer__mscan_fetch(&records, find->source, offset, 0, some, scratch, err);
        if (status)
            return status;
        for (size_t i = some; unbroken && i-- > 0;) {
            unbroken = makes_sense(find, records + i * COFFER__MSCAN_RECORD_SIZE);
            run += unbroken;
        }
    }
    *out = run;
    return coffer_source_intact(find->source, err);
}

/* Whether only this division of the bytes into records makes sense. */
static coffer_status is_only_division(bool *out, const search *find, uint64_t offset, uint64_t count,
                                      coffer_error *err)
{
    *out = count >= FEW_RECORDS;
    for (uint64_t shift = 1; *out && shift < COFFER__MSCAN_RECORD_SIZE; shift++) {
        uint64_t sense, run;
        coffer_status status = count_sense(&sense, &run, find, offset + shift, count - 1, err);
        if (status)
            return status;
        *out = run < count - 1;
    }
    return COFFER_OK;
}

/* ---- Deciding ---- */

static void take_head(coffer__mscan_area *area, const search *find)
{
    uint64_t missing_records = (find->missing + COFFER__MSCAN_RECORD_SIZE - 1) / COFFER__MSCAN_RECORD_SIZE;
    area->lost = missing_records;
    area->count = find->header->record_count - missing_records;
    area->trailing = (find->size - area->start) % COFFER__MSCAN_RECORD_SIZE;
}

static void take_tail(coffer__mscan_area *area, const search *find)
{
    take_head(area, find);
    area->overwritten_head = true;
    area->start = find->size - area->count * COFFER__MSCAN_RECORD_SIZE;
    area->trailing = 0;
}

/* A gap in the middle: records before it are counted from the metadata, records after it from the end. Where
 * the two overlap, both divisions make sense, and neither is certain. */
static coffer_status take_around_gap(coffer__mscan_area *area, const search *find, uint64_t head,
                                     uint64_t tail, coffer_error *err)
{
    uint64_t present = find->size - area->start;
    uint64_t head_bytes = head * COFFER__MSCAN_RECORD_SIZE, tail_bytes = tail * COFFER__MSCAN_RECORD_SIZE;
    if (head_bytes + tail_bytes > present) {
        head = (present - tail_bytes) / COFFER__MSCAN_RECORD_SIZE;
        tail = (present - head_bytes) / COFFER__MSCAN_RECORD_SIZE;
    }
    uint64_t tail_start = find->size - tail * COFFER__MSCAN_RECORD_SIZE;
    bool head_certain = head == 0, tail_certain = tail == 0;
    coffer_status status = COFFER_OK;
    if (head > 0)
        status = is_only_division(&head_certain, find, area->start, head, err);
    if (!status && tail > 0)
        status = is_only_division(&tail_certain, find, tail_start, tail, err);
    if (status)
        return status;
    area->count = head_certain ? head : 0;
    area->tail_count = tail_certain ? tail : 0;
    area->tail_start = tail_start;
    area->lost = find->header->record_count - area->count - area->tail_count;
    area->trailing = 0;
    area->uncertain = area->count + area->tail_count == 0;
    return COFFER_OK;
}

/* Neither division explains all records: a gap, or a short file that is damaged elsewhere too. */
static coffer_status place_damaged(coffer__mscan_area *area, const search *find, uint64_t head,
                                   uint64_t head_sense, coffer_error *err)
{
    uint64_t present = find->size - area->start, whole = present / COFFER__MSCAN_RECORD_SIZE, tail;
    uint64_t run, tail_sense;
    coffer_status status = count_from_end(&tail, find, whole, err);
    if (status)
        return status;
    bool meet = (head + tail) * COFFER__MSCAN_RECORD_SIZE + 2 * (COFFER__MSCAN_RECORD_SIZE - 1) >= present;
    if (meet && find->missing % COFFER__MSCAN_RECORD_SIZE != 0)
        return take_around_gap(area, find, head, tail, err);
    status = count_sense(&tail_sense, &run, find, find->size - whole * COFFER__MSCAN_RECORD_SIZE, whole, err);
    if (status)
        return status;
    take_head(area, find);
    area->uncertain = find->missing % COFFER__MSCAN_RECORD_SIZE != 0 && find->metadata->total_tokens > 0 &&
                      (head_sense * 100 < whole * MOSTLY_RIGHT || tail_sense * 100 > whole * MOSTLY_WRONG);
    return COFFER_OK;
}

static coffer_status place_records(coffer__mscan_area *area, const search *find, coffer_error *err)
{
    uint64_t whole = (find->size - area->start) / COFFER__MSCAN_RECORD_SIZE, head, head_sense, tail = 0;
    uint64_t lost = (find->missing + COFFER__MSCAN_RECORD_SIZE - 1) / COFFER__MSCAN_RECORD_SIZE;
    /* The metadata can have overwritten no more than its own length. */
    bool may_be_overwritten = find->missing < find->metadata->text_len && lost < find->header->record_count;
    uint64_t left = may_be_overwritten ? find->header->record_count - lost : 0;
    coffer_status status = count_sense(&head_sense, &head, find, area->start, whole, err);
    if (!status && may_be_overwritten)
        status = count_from_end(&tail, find, left, err);
    if (status)
        return status;
    bool from_start = head == whole, from_end = may_be_overwritten && tail == left;
    bool same_division = find->missing % COFFER__MSCAN_RECORD_SIZE == 0;
    bool padded = find->metadata->text_len < find->header->header_len - COFFER__MSCAN_HEADER_SIZE;
    if (from_end && !padded && grew_by_sequences(find)) {
        take_tail(area, find);
    } else if (from_start) {
        take_head(area, find);
        area->uncertain = from_end && !same_division && !padded && whole >= FEW_RECORDS;
    } else if (from_end) {
        bool certain;
        status = is_only_division(&certain, find, find->size - left * COFFER__MSCAN_RECORD_SIZE, left, err);
        take_tail(area, find);
        area->uncertain = !status && !certain;
    } else {
        status = place_damaged(area, find, head, head_sense, err);
    }
    return status;
}

coffer_status coffer__mscan_locate_records(coffer__mscan_area *out, coffer_source *src,
                                           const coffer__mscan_header *header,
                                           const coffer__mscan_metadata *metadata, coffer_error *err)
{
    uint64_t size = coffer_source_size(src), present = size - header->header_len;
    uint64_t wanted = (uint64_t)header->record_count * COFFER__MSCAN_RECORD_SIZE;
    coffer__mscan_area area = { .start = header->header_len, .count = header->record_count };
    coffer_status status = COFFER_OK;
    if (present >= wanted) {
        area.trailing = present - wanted;
    } else {
        search find = { src, header, metadata, size, wanted - present };
        if (metadata)
            status = place_records(&area, &find, err);
        else
            take_head(&area, &find);
    }
    if (!status)
        *out = area;
    return status;
}

/* ---- Metadata ---- */

/* Text with every byte that is not UTF-8 replaced by U+FFFD. */
static coffer_status read_as_utf8(coffer__buffer *out, coffer_source *src, const coffer__mscan_header *header,
                                  coffer_error *err)
{
    size_t len = header->header_len - COFFER__MSCAN_HEADER_SIZE;
    char *text = coffer__malloc(len + 1);
    coffer_status status;
    if (!text)
        return coffer__fail_no_memory(err, len + 1);
    status = coffer_source_read_at(text, src, COFFER__MSCAN_HEADER_SIZE, len, err);
    for (size_t done = 0; !status && done < len;) {
        size_t valid = coffer__utf8_valid_prefix(text + done, len - done);
        coffer__buffer_append(out, text + done, valid);
        done += valid;
        if (done < len) {
            coffer__buffer_append(out, "\xef\xbf\xbd", 3);
            done++;
        }
    }
    coffer__buffer_append(out, "", 1);
    coffer__free(text);
    if (!status && out->failed)
        status = coffer__fail_no_memory(err, len);
    return status;
}

coffer_status coffer__mscan_read_replaced(coffer__mscan_metadata *out, coffer_source *src,
                                          const coffer__mscan_header *header, const coffer_limits *limits,
                                          coffer_report *found, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_status status = read_as_utf8(&text, src, header, err);
    size_t len = 0;
    if (status) {
        coffer__buffer_free(&text);
        return status;
    }
    char *released = (char *)coffer__buffer_release(&text, &len);
    return coffer__mscan_metadata_load(out, released, len - 1, COFFER__MSCAN_HEADER_SIZE, limits, found, err);
}

coffer_status coffer__mscan_read_surrounded(coffer__mscan_metadata *out, coffer_source *src,
                                            const coffer__mscan_header *header, const coffer_limits *limits,
                                            coffer_report *found, coffer_error *err)
{
    coffer__buffer text = COFFER__BUFFER_INIT;
    coffer_status status = read_as_utf8(&text, src, header, err);
    size_t len = 0, start, object;
    if (status) {
        coffer__buffer_free(&text);
        return status;
    }
    char *released = (char *)coffer__buffer_release(&text, &len);
    len--;
    start = len >= 3 && memcmp(released, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    start += strspn(released + start, " \t\r\n");
    object = coffer__json_object_length(released + start, len - start);
    memmove(released, released + start, object);
    return coffer__mscan_metadata_load(out, released, object, COFFER__MSCAN_HEADER_SIZE + start, limits,
                                       found, err);
}
