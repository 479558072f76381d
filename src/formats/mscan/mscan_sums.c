#include "formats/mscan/mscan_sums.h"

#include "base/checked.h"
#include "base/crc32.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/report.h"
#include "io/source_private.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HEX_DIGITS 8
#define READ_BYTES 65536 /* read at once where the file is not mapped */

/* The metadata of a sealed file ends with this, eight digits and `"}`. */
static const char seal_start[] = ",\"" COFFER__MSCAN_SEAL_KEY "\":\"";
static const char seal_end[] = "\"}";
#define SEAL_SIZE (sizeof seal_start - 1 + HEX_DIGITS + sizeof seal_end - 1)

/* ---- Hexadecimal ---- */

/* Lower case only: one sum has one spelling, so that no changed bit of it reads the same. */
static bool read_hex(uint32_t *out, const char *digits)
{
    uint32_t value = 0;
    for (size_t i = 0; i < HEX_DIGITS; i++) {
        bool decimal = digits[i] >= '0' && digits[i] <= '9';
        if (!decimal && (digits[i] < 'a' || digits[i] > 'f'))
            return false;
        value = value << 4 | (uint32_t)(decimal ? digits[i] - '0' : digits[i] - 'a' + 10);
    }
    *out = value;
    return true;
}

static void write_hex(char *digits, uint32_t value)
{
    for (size_t i = HEX_DIGITS; i-- > 0; value >>= 4)
        digits[i] = "0123456789abcdef"[value & 15];
}

/* ---- The seal ---- */

coffer__mscan_seal coffer__mscan_seal_of(const coffer__mscan_header *header, const char *text, size_t len)
{
    coffer__mscan_seal seal = { 0 };
    size_t end = coffer__mscan_trimmed_length(text, len);
    if (end < SEAL_SIZE)
        return seal;
    size_t digits_at = end - (sizeof seal_end - 1) - HEX_DIGITS, after = digits_at + HEX_DIGITS;
    seal.spelled = memcmp(text + end - SEAL_SIZE, seal_start, sizeof seal_start - 1) == 0 &&
                   memcmp(text + after, seal_end, sizeof seal_end - 1) == 0;
    if (!seal.spelled)
        return seal;
    uint8_t bytes[COFFER__MSCAN_HEADER_SIZE];
    coffer__mscan_write_header(bytes, header->header_len, header->record_count);
    seal.readable = read_hex(&seal.stored, text + digits_at);
    seal.found = coffer__crc32(0, bytes, sizeof bytes);
    seal.found = coffer__crc32(seal.found, text, digits_at);
    seal.found = coffer__crc32(seal.found, "00000000", HEX_DIGITS);
    seal.found = coffer__crc32(seal.found, text + after, len - after);
    return seal;
}

void coffer__mscan_close_seal(coffer__buffer *json, uint32_t area, uint64_t record_count)
{
    static const char spaces[64] = "                                                                ";
    uint8_t header[COFFER__MSCAN_HEADER_SIZE];
    coffer__mscan_write_header(header, area, (uint32_t)record_count);
    uint32_t crc = coffer__crc32(0, header, sizeof header);
    crc = coffer__crc32(crc, json->data, json->len);
    for (size_t left = area - sizeof header - json->len; left > 0;) {
        size_t some = left < sizeof spaces ? left : sizeof spaces;
        crc = coffer__crc32(crc, spaces, some);
        left -= some;
    }
    char digits[HEX_DIGITS];
    write_hex(digits, crc);
    memcpy(json->data + json->len - (sizeof seal_end - 1) - HEX_DIGITS, digits, HEX_DIGITS);
}

static coffer_status refuse(coffer_report *report, coffer_severity severity, coffer_error *err,
                            const coffer_error *found)
{
    if (report)
        coffer__report_add(report, found->status, severity, found->offset, "%s", found->text);
    else if (severity == COFFER_ERROR)
        return coffer__fail_copy(err, found);
    return COFFER_OK;
}

/* Whether the value of "checksums" has a sum for each MiB of the records. */
static bool has_all_sums(const coffer__json_value *sums, uint64_t record_count)
{
    const coffer__json_value *records = coffer__json_find(sums, "records");
    uint64_t chunk_bytes;
    return coffer__json_u64(&chunk_bytes, coffer__json_find(sums, "chunk_bytes")) &&
           chunk_bytes == COFFER__CHUNK_BYTES && records && records->kind == COFFER__JSON_STRING &&
           records->string_len == HEX_DIGITS * coffer__chunk_count(record_count * COFFER__MSCAN_RECORD_SIZE);
}

coffer_status coffer__mscan_check_seal(const coffer__mscan_metadata *metadata, uint64_t record_count,
                                       coffer_report *report, coffer_error *err)
{
    const coffer__json_value *sums = coffer__json_find(metadata->root, COFFER__MSCAN_SUMS_KEY);
    const coffer__json_value *key = coffer__json_find(metadata->root, COFFER__MSCAN_SEAL_KEY);
    const coffer__mscan_seal *seal = &metadata->seal;
    coffer_error found = COFFER_ERROR_INIT;
    if (!sums && !key)
        return COFFER_OK;
    if (!sums || !key) {
        coffer__fail(&found, COFFER_E_MISSING, COFFER__MSCAN_HEADER_SIZE,
                     "the metadata has \"%s\", but not \"%s\": it was damaged",
                     sums ? COFFER__MSCAN_SUMS_KEY : COFFER__MSCAN_SEAL_KEY,
                     sums ? COFFER__MSCAN_SEAL_KEY : COFFER__MSCAN_SUMS_KEY);
        return refuse(report, COFFER_ERROR, err, &found);
    }
    if (!seal->spelled) {
        coffer__fail(&found, COFFER_E_INCONSISTENT, COFFER__MSCAN_HEADER_SIZE,
                     "stale checksums: another program rewrote the metadata, so nothing is verified");
        return refuse(report, COFFER_WARNING, err, &found);
    }
    if (!seal->readable || seal->stored != seal->found) {
        coffer__fail(&found, COFFER_E_BAD_CHECKSUM, 0,
                     "header or metadata is damaged: CRC-32 is %08" PRIx32 ", %s says %08" PRIx32,
                     seal->found, COFFER__MSCAN_SEAL_KEY, seal->stored);
        return refuse(report, COFFER_ERROR, err, &found);
    }
    if (has_all_sums(sums, record_count))
        return COFFER_OK;
    coffer__fail(&found, COFFER_E_INCONSISTENT, COFFER__MSCAN_HEADER_SIZE,
                 "\"%s\" does not have a sum for each MiB of the %" PRIu64 " records", COFFER__MSCAN_SUMS_KEY,
                 record_count);
    return refuse(report, COFFER_ERROR, err, &found);
}

/* ---- Sums in the metadata ---- */

void coffer__mscan_write_sums(coffer__json_writer *json, const uint32_t *sums, size_t count)
{
    coffer__buffer digits = COFFER__BUFFER_INIT;
    for (size_t i = 0; i < count; i++) {
        char *next = (char *)coffer__buffer_extend(&digits, HEX_DIGITS);
        if (next)
            write_hex(next, sums[i]);
    }
    json->out->failed |= digits.failed;
    coffer__json_key(json, COFFER__MSCAN_SUMS_KEY);
    coffer__json_open_object(json);
    coffer__json_key(json, "chunk_bytes");
    coffer__json_write_u64(json, COFFER__CHUNK_BYTES);
    coffer__json_key(json, "records");
    coffer__json_string_len(json, coffer__buffer_text(&digits), digits.len);
    coffer__json_close_object(json);
    coffer__json_key(json, COFFER__MSCAN_SEAL_KEY);
    coffer__json_string(json, "00000000");
    coffer__buffer_free(&digits);
}

coffer_status coffer__mscan_load_sums(bool *found, uint32_t **sums, const coffer__mscan_metadata *metadata,
                                      uint64_t record_count, coffer_error *err)
{
    const coffer__json_value *table = coffer__json_find(metadata->root, COFFER__MSCAN_SUMS_KEY);
    *found = false;
    *sums = NULL;
    if (!metadata->seal.spelled || !has_all_sums(table, record_count))
        return COFFER_OK;
    const coffer__json_value *records = coffer__json_find(table, "records");
    size_t count = records->string_len / HEX_DIGITS;
    uint32_t *values = count ? coffer__alloc_array(count, sizeof *values) : NULL;
    if (count && !values)
        return coffer__fail_no_memory(err, count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        if (!read_hex(&values[i], records->as.string + i * HEX_DIGITS)) {
            coffer__free(values);
            return coffer__fail(err, COFFER_E_BAD_CHECKSUM, COFFER__MSCAN_HEADER_SIZE,
                                "sum %zu of \"%s\" is not eight hexadecimal digits", i,
                                COFFER__MSCAN_SUMS_KEY);
        }
    }
    *found = true;
    *sums = values;
    return COFFER_OK;
}

/* ---- Verified reads ---- */

struct coffer__mscan_verifier {
    coffer_source *source;
    uint64_t area;
    const coffer__mscan_metadata *metadata;
    coffer__mscan_range *ranges; /* by offset */
    size_t count;
    atomic_uchar *verified; /* by range */
};

static int compare_ranges(const void *left, const void *right)
{
    const coffer__mscan_range *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static void take_chunks(coffer__mscan_verifier *verifier, const uint32_t *sums, uint64_t size)
{
    for (size_t i = 0; sums && i < verifier->count; i++)
        verifier->ranges[i] = (coffer__mscan_range){ (uint64_t)i * COFFER__CHUNK_BYTES,
                                                     coffer__chunk_len(size, i), sums[i], COFFER_INDEX_NONE };
}

static void take_sequences(coffer__mscan_verifier *verifier, uint64_t record_count)
{
    const coffer__mscan_metadata *metadata = verifier->metadata;
    verifier->count = 0;
    for (size_t i = 0; i < metadata->sequence_count; i++) {
        coffer__mscan_extent extent = coffer__mscan_extent_of(metadata->sequence_values[i]);
        if (extent.has_crc && extent.num_records > 0 &&
            coffer__range_fits(extent.first_record, extent.num_records, record_count))
            verifier->ranges[verifier->count++] =
                (coffer__mscan_range){ extent.first_record * COFFER__MSCAN_RECORD_SIZE,
                                       extent.num_records * COFFER__MSCAN_RECORD_SIZE, extent.crc, i };
    }
    qsort(verifier->ranges, verifier->count, sizeof *verifier->ranges, compare_ranges);
}

coffer_status coffer__mscan_verifier_new(coffer__mscan_verifier **out, coffer_source *src, uint64_t area,
                                         uint64_t record_count, const coffer__mscan_metadata *metadata,
                                         bool by_sequence, coffer_error *err)
{
    uint64_t size = record_count * COFFER__MSCAN_RECORD_SIZE;
    uint32_t *sums = NULL;
    bool has_table = false;
    coffer_status status =
        by_sequence ? COFFER_OK : coffer__mscan_load_sums(&has_table, &sums, metadata, record_count, err);
    if (status)
        return status;
    size_t count = has_table ? (size_t)coffer__chunk_count(size) : metadata->sequence_count;
    if (count == 0) {
        coffer__free(sums);
        *out = NULL;
        return COFFER_OK;
    }
    coffer__mscan_verifier *verifier = coffer__calloc(1, sizeof *verifier);
    coffer__mscan_range *ranges = coffer__alloc_array(count, sizeof *ranges);
    atomic_uchar *verified = coffer__calloc(count, sizeof *verified);
    if (!verifier || !ranges || !verified) {
        status = coffer__fail_no_memory(err, count * sizeof *ranges);
        coffer__free(verifier);
        coffer__free(ranges);
        coffer__free(verified);
        goto out;
    }
    *verifier = (coffer__mscan_verifier){ src, area, metadata, ranges, count, verified };
    if (has_table)
        take_chunks(verifier, sums, size);
    else
        take_sequences(verifier, record_count);
    *out = verifier;
out:
    coffer__free(sums);
    return status;
}

void coffer__mscan_verifier_free(coffer__mscan_verifier *verifier)
{
    if (!verifier)
        return;
    coffer__free(verifier->ranges);
    coffer__free(verifier->verified);
    coffer__free(verifier);
}

size_t coffer__mscan_verifier_count(const coffer__mscan_verifier *verifier)
{
    return verifier ? verifier->count : 0;
}

const coffer__mscan_range *coffer__mscan_verifier_at(const coffer__mscan_verifier *verifier, size_t index)
{
    return &verifier->ranges[index];
}

coffer_status coffer__mscan_range_crc(uint32_t *out, const coffer__mscan_verifier *verifier, size_t index,
                                      coffer_error *err)
{
    const coffer__mscan_range *range = &verifier->ranges[index];
    uint8_t scratch[READ_BYTES];
    uint32_t crc = 0;
    coffer_status status = COFFER_OK;
    for (uint64_t done = 0; !status && done < range->len;) {
        size_t some = range->len - done < READ_BYTES ? (size_t)(range->len - done) : READ_BYTES;
        const uint8_t *bytes = NULL;
        status = coffer__source_fetch(&bytes, verifier->source, verifier->area + range->offset + done, some,
                                      scratch, err);
        if (!status)
            crc = coffer__crc32(crc, bytes, some);
        done += some;
    }
    if (!status)
        status = coffer_source_intact(verifier->source, err);
    if (!status)
        *out = crc;
    return status;
}

static coffer_status verify_range(coffer__mscan_verifier *verifier, size_t index, bool accept,
                                  coffer_error *err)
{
    coffer_error damage = COFFER_ERROR_INIT;
    const coffer__mscan_range *range = &verifier->ranges[index];
    uint32_t found = 0;
    coffer_status status = coffer__mscan_range_crc(&found, verifier, index, err);
    if (status)
        return status;
    if (found != range->crc) {
        coffer__fail(&damage, COFFER_E_BAD_CHECKSUM, verifier->area + range->offset,
                     "records %" PRIu64 " to %" PRIu64 " are damaged: CRC-32 is %08" PRIx32
                     ", the metadata says %08" PRIx32,
                     range->offset / COFFER__MSCAN_RECORD_SIZE,
                     (range->offset + range->len - 1) / COFFER__MSCAN_RECORD_SIZE, found, range->crc);
        return accept ? coffer__source_accept_damage(verifier->source, &damage, err)
                      : coffer__fail_copy(err, &damage);
    }
    atomic_store(&verifier->verified[index], 1);
    return COFFER_OK;
}

static coffer_status verify_ranges(coffer__mscan_verifier *verifier, uint64_t first, uint64_t count,
                                   bool accept, coffer_error *err)
{
    uint64_t begin = first * COFFER__MSCAN_RECORD_SIZE, end = begin + count * COFFER__MSCAN_RECORD_SIZE;
    size_t low = 0, high = coffer__mscan_verifier_count(verifier);
    if (high == 0)
        return COFFER_OK;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (verifier->ranges[middle].offset + verifier->ranges[middle].len <= begin)
            low = middle + 1;
        else
            high = middle;
    }
    coffer_status status = COFFER_OK;
    for (size_t i = low; !status && i < verifier->count && verifier->ranges[i].offset < end; i++) {
        if (!atomic_load(&verifier->verified[i]))
            status = verify_range(verifier, i, accept, err);
    }
    return status;
}

coffer_status coffer__mscan_verify(coffer__mscan_verifier *verifier, uint64_t first, uint64_t count,
                                   coffer_error *err)
{
    return verify_ranges(verifier, first, count, true, err);
}

coffer_status coffer__mscan_verify_all(coffer__mscan_verifier *verifier, uint64_t count, coffer_error *err)
{
    return verify_ranges(verifier, 0, count, false, err);
}
