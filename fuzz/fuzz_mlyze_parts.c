/* Any pair of files that a recording may leave becomes a trace that opens, or is refused. The first byte says
 * where the input is split. */
#include "mlyze_input.h"

#include "formats/mlyze/write/mlyze_parts.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[80], part[96], strings[96];

static void name_files(void)
{
    const char *root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/coffer-fuzz-%d", root, (int)getpid());
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(strings, sizeof strings, "%s.strings", path);
}

static void write_file(const char *name, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(name, "wb");
    MUST(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void repair_header(uint8_t *bytes, size_t size, const char *magic)
{
    if (size < COFFER__MLYZE_PARTS_HEADER)
        return;
    memcpy(bytes, magic, 4);
    coffer__store_u32(bytes + 4, COFFER__MLYZE_PARTS_VERSION);
    coffer__store_u32(bytes + COFFER__MLYZE_PARTS_CRC_AT,
                      coffer__crc32(0, bytes, COFFER__MLYZE_PARTS_CRC_AT));
}

static void repair_chunks(uint8_t *bytes, size_t size)
{
    for (size_t at = COFFER__MLYZE_PARTS_HEADER; at < size && size - at > COFFER__MLYZE_CHUNK_HEADER;) {
        uint32_t len = coffer__load_u32(bytes + at);
        if (len > size - at - COFFER__MLYZE_CHUNK_HEADER)
            return;
        coffer__store_u32(bytes + at + 4, coffer__crc32(0, bytes + at + COFFER__MLYZE_CHUNK_HEADER, len));
        at += COFFER__MLYZE_CHUNK_HEADER + len;
    }
}

/* The trace opens, and nothing of the parts is left. */
static void look_at_trace(const coffer_limits *limits)
{
    coffer_mlyze_open_opts opts = COFFER_MLYZE_OPEN_OPTS_INIT;
    coffer_source *source = NULL;
    coffer_mlyze *trace = NULL;
    opts.limits = limits;
    MUST(access(part, F_OK) != 0 && access(strings, F_OK) != 0);
    MUST(coffer_source_open(&source, path, NULL, NULL) == COFFER_OK);
    MUST(coffer_mlyze_open(&trace, source, &opts, NULL) == COFFER_OK);
    MUST(coffer_mlyze_damage(trace, NULL) == COFFER_OK);
    coffer_mlyze_close(trace);
    coffer_source_close(source);
}

static void recover(const coffer_limits *limits)
{
    coffer_mlyze_writer_opts opts = COFFER_MLYZE_WRITER_OPTS_INIT;
    opts.overwrite = true;
    coffer_error err = COFFER_ERROR_INIT;
    coffer_report *report = NULL;
    opts.limits = limits;
    opts.no_index = true;
    MUST(coffer_report_new(&report, limits->findings, NULL) == COFFER_OK);
    coffer_status status = coffer_mlyze_recover(report, path, &opts, &err);
    MUST(status == COFFER_OK || err.text[0]);
    if (status == COFFER_OK)
        look_at_trace(limits);
    coffer_report_free(report);
}

/* The end of the first of the two files, which begins after that byte. */
static size_t end_of_part(const uint8_t *bytes, size_t size)
{
    return 1 + (size - 1) * bytes[0] / 255;
}

static void repair_parts(uint8_t *bytes, size_t size)
{
    if (size < 2)
        return;
    size_t end = end_of_part(bytes, size);
    repair_header(bytes + 1, end - 1, COFFER__MLYZE_PART_MAGIC);
    if (end - 1 > COFFER__MLYZE_PARTS_HEADER)
        fuzz_repair_blocks(bytes + 1, COFFER__MLYZE_PARTS_HEADER, end - 1, false);
    repair_header(bytes + end, size - end, COFFER__MLYZE_STRINGS_MAGIC);
    repair_chunks(bytes + end, size - end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input;
    if (size < 2 || !fuzz_input_begin(&input, data, size, repair_parts))
        return 0;
    size_t end = end_of_part(input.bytes, size);
    name_files();
    write_file(part, input.bytes + 1, end - 1);
    write_file(strings, input.bytes + end, size - end);
    recover(&input.limits);
    unlink(path);
    unlink(part);
    unlink(strings);
    fuzz_input_close(&input);
    return 0;
}
