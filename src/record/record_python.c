/* Python frames of the calling thread, read from the interpreter's memory. Nothing of the interpreter is
 * called except the function that finds the state of this thread, which reads a thread-specific value. No
 * other thread changes the frames of a thread that is inside an allocation. */
#include "record/record_thread.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Offsets in the structs of one version, for builds without debugging and with the global lock. */
typedef struct layout {
    unsigned minor;
    uint16_t state_frame; /* thread state: the frame, or the struct that has it */
    int16_t holder_frame; /* in that struct; −1 = the state has the frame itself */
    uint16_t frame_back, frame_code, frame_last;
    int16_t frame_owner; /* −1 = frames have none */
    uint16_t code_line, code_file, code_name, code_table;
    int16_t code_start; /* where the instructions begin, when frame_last is an address; −1 = it is an index */
    uint16_t ascii_data, compact_data;
} layout;

static const layout layouts[] = {
    { 9, 24, -1, 24, 32, 104, -1, 40, 104, 112, 120, -1, 48, 72 },
    { 10, 24, -1, 24, 32, 96, -1, 40, 104, 112, 120, -1, 48, 72 },
    { 11, 56, 8, 48, 32, 56, 69, 72, 112, 128, 136, 184, 48, 72 },
    { 12, 56, 0, 8, 0, 56, 70, 68, 112, 128, 136, 192, 40, 56 },
    { 13, 72, -1, 8, 0, 56, 70, 68, 112, 128, 136, 200, 40, 56 },
};

enum {
    OBJECT_TYPE = 8,
    BYTES_SIZE = 16,
    BYTES_DATA = 32,
    TEXT_LENGTH = 16,
    TEXT_STATE = 32,
    OWNED_BY_C = 3,
    FRAME_ROWS = 8192,
    CODE_ROWS = 4096
};

static struct {
    const layout *at; /* NULL: no Python, or a version that is not known */
    void *(*state)(void);
    const void *code_type;
    uintptr_t eval_start, eval_end;
} python;

static _Atomic uint32_t code_count;

/* A place in the code, and its word in a stack. */
typedef struct frame_row {
    uintptr_t code, table;
    int64_t last;
    uint64_t word;
} frame_row;

typedef struct code_row {
    uintptr_t code, table, name;
    uint64_t number;
} code_row;

struct coffer__record_python_rows {
    frame_row frames[FRAME_ROWS];
    code_row codes[CODE_ROWS];
};

/* ---- Finding the interpreter ---- */

static unsigned minor_version(void)
{
    const unsigned long *number = dlsym(RTLD_DEFAULT, "Py_Version");
    if (number)
        return *number >> 24 == 3 ? (unsigned)(*number >> 16 & 0xff) : 0;
    const char *(*text)(void) = NULL;
    *(void **)&text = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *version = text ? text() : "";
    return strncmp(version, "3.", 2) == 0 ? (unsigned)strtoul(version + 2, NULL, 10) : 0;
}

/* Debug builds and those without the global lock have other layouts. */
static bool is_ordinary(void)
{
    return !dlsym(RTLD_DEFAULT, "_Py_NegativeRefcount") && !dlsym(RTLD_DEFAULT, "_Py_MergeZeroLocalRefcount");
}

static void find_evaluator(void)
{
    void *start = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    void *found = NULL;
    Dl_info info;
    if (!start || !dladdr1(start, &info, &found, RTLD_DL_SYMENT) || !found)
        return;
    const ElfW(Sym) *symbol = found;
    python.eval_start = (uintptr_t)start;
    python.eval_end = python.eval_start + symbol->st_size;
}

void coffer__record_python_attach(void)
{
    *(void **)&python.state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    python.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    if (!python.state || !python.code_type || !is_ordinary())
        return;
    unsigned minor = minor_version();
    find_evaluator();
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        if (layouts[i].minor == minor)
            python.at = &layouts[i];
    if (python.at)
        coffer__record_snapshot_attach();
}

bool coffer__record_python_is_evaluator(uintptr_t pc)
{
    return pc > python.eval_start && pc <= python.eval_end;
}

/* ---- Reading objects ---- */

static uintptr_t word_at(uintptr_t object, size_t offset)
{
    uintptr_t word;
    memcpy(&word, (const void *)(object + offset), sizeof word);
    return word;
}

static int32_t int_at(uintptr_t object, size_t offset)
{
    int32_t value;
    memcpy(&value, (const void *)(object + offset), sizeof value);
    return value;
}

static size_t put_character(char *out, size_t at, size_t max, uint32_t character)
{
    char bytes[4];
    size_t count = 0;
    if (character < 0x80) {
        bytes[count++] = (char)character;
    } else if (character < 0x800) {
        bytes[count++] = (char)(0xc0 | character >> 6);
        bytes[count++] = (char)(0x80 | (character & 0x3f));
    } else if (character < 0x10000) {
        bytes[count++] = (char)(0xe0 | character >> 12);
        bytes[count++] = (char)(0x80 | (character >> 6 & 0x3f));
        bytes[count++] = (char)(0x80 | (character & 0x3f));
    } else {
        bytes[count++] = (char)(0xf0 | (character >> 18 & 7));
        bytes[count++] = (char)(0x80 | (character >> 12 & 0x3f));
        bytes[count++] = (char)(0x80 | (character >> 6 & 0x3f));
        bytes[count++] = (char)(0x80 | (character & 0x3f));
    }
    if (count > max - at)
        return max;
    memcpy(out + at, bytes, count);
    return at + count;
}

size_t coffer__record_python_text(char *out, size_t max, const void *object)
{
    uintptr_t text = (uintptr_t)object;
    uint32_t state = (uint32_t)int_at(text, TEXT_STATE);
    unsigned width = state >> 2 & 7;
    bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    size_t len = word_at(text, TEXT_LENGTH), used = 0;
    if (!compact)
        return 0;
    uintptr_t data = text + (ascii ? python.at->ascii_data : python.at->compact_data);
    for (size_t i = 0; i < len && used < max; i++) {
        uint32_t character = 0;
        memcpy(&character, (const void *)(data + i * width), width <= 4 ? width : 1);
        used = put_character(out, used, max, character);
    }
    return used;
}

/* ---- Lines ---- */

/* 3.9: pairs of increments; 3.10: ranges, some of which have no line. */
static int64_t old_line(const uint8_t *table, size_t len, int64_t line, int64_t last)
{
    int64_t end = 0;
    bool ranges = python.at->minor == 10;
    for (size_t i = 0; i + 1 < len; i += 2) {
        int delta = table[i + 1] < 128 ? table[i + 1] : table[i + 1] - 256;
        end += table[i];
        if (!ranges && end > last)
            break;
        if (!ranges || delta != -128)
            line += delta;
        if (ranges && last < end)
            return line;
    }
    return line;
}

static uint64_t take_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift < 60; shift += 6) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value;
}

/* 3.11 and later: a sequence of ranges with a line and columns (PEP 657). */
static int64_t new_line(const uint8_t *table, size_t len, int64_t line, int64_t last)
{
    enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    const uint8_t *at = table, *end = table + len;
    int64_t covered = 0;
    while (at < end) {
        uint8_t head = *at++;
        unsigned code = head >> 3 & 15;
        covered += (head & 7) + 1;
        if (code == LONG || code == NO_COLUMNS) {
            uint64_t delta = take_varint(&at, end);
            line += delta & 1 ? -(int64_t)(delta >> 1) : (int64_t)(delta >> 1);
            for (int i = 0; code == LONG && i < 3; i++)
                take_varint(&at, end);
        } else if (code >= ONE_LINE && code < NO_COLUMNS) {
            line += code - ONE_LINE;
            at += 2;
        } else if (code < ONE_LINE) {
            at += 1;
        }
        if (last < covered)
            return line;
    }
    return line;
}

static uint64_t line_of(uintptr_t code, int64_t last)
{
    uintptr_t table = word_at(code, python.at->code_table);
    const uint8_t *bytes = (const uint8_t *)(table + BYTES_DATA);
    size_t len = word_at(table, BYTES_SIZE);
    int64_t line = int_at(code, python.at->code_line);
    if (last >= 0)
        line = python.at->minor >= 11 ? new_line(bytes, len, line, last) : old_line(bytes, len, line, last);
    return line > 0 ? (uint64_t)line : 0;
}

/* ---- Frames ---- */

/* Tells the reader the names of a function. */
static uint64_t number_of(coffer__record_thread *thread, uintptr_t code, uintptr_t table)
{
    code_row *row = &thread->python->codes[(code >> 4) % CODE_ROWS];
    uintptr_t name = word_at(code, python.at->code_name);
    if (row->code == code && row->table == table && row->name == name)
        return row->number;
    char texts[2][COFFER__RECORD_TEXT_MAX / 4];
    size_t name_len = coffer__record_python_text(texts[0], sizeof texts[0], (const void *)name);
    size_t file_len = coffer__record_python_text(texts[1], sizeof texts[1],
                                                 (const void *)word_at(code, python.at->code_file));
    uint32_t words = (uint32_t)(2 + (name_len + 7) / 8 + (file_len + 7) / 8);
    uint64_t number = atomic_fetch_add(&code_count, 1) + UINT64_C(1);
    if (!coffer__record_reserve(thread, words + 1))
        return 0;
    coffer__record_put(thread, (uint64_t)words << 8 | COFFER__RECORD_CODE);
    coffer__record_put(thread, number);
    coffer__record_put(thread, (uint64_t)name_len << 32 | file_len);
    coffer__record_put_text(thread, texts[0], name_len);
    coffer__record_put_text(thread, texts[1], file_len);
    coffer__record_publish(thread);
    *row = (code_row){ code, table, name, number };
    return number;
}

static uint64_t word_of(coffer__record_thread *thread, uintptr_t code, int64_t last)
{
    uintptr_t table = word_at(code, python.at->code_table);
    uint64_t hash = (code ^ (uint64_t)last << 20) * UINT64_C(0x9e3779b97f4a7c15);
    frame_row *row = &thread->python->frames[(hash >> 40) % FRAME_ROWS];
    if (COFFER__RECORD_LIKELY(row->code == code && row->last == last && row->table == table))
        return row->word;
    uint64_t word = COFFER__RECORD_PYTHON_FRAME | line_of(code, last) << COFFER__RECORD_LINE_SHIFT |
                    number_of(thread, code, table);
    *row = (frame_row){ code, table, last, word };
    return word;
}

/* The index of the instruction in its own unit: bytes in 3.9, instructions of two bytes since. */
static int64_t last_of(uintptr_t frame, uintptr_t code)
{
    if (python.at->code_start < 0)
        return python.at->minor == 10 ? 2 * (int64_t)int_at(frame, python.at->frame_last)
                                      : int_at(frame, python.at->frame_last);
    uintptr_t start = code + (uintptr_t)python.at->code_start, last = word_at(frame, python.at->frame_last);
    return last < start ? -1 : (int64_t)((last - start) / 2);
}

static bool make_rows(coffer__record_thread *thread)
{
    if (thread->python)
        return true;
    void *memory =
        mmap(NULL, sizeof *thread->python, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    thread->python = memory;
    return true;
}

void coffer__record_python_release(coffer__record_thread *thread)
{
    if (thread->python)
        munmap(thread->python, sizeof *thread->python);
    thread->python = NULL;
}

uint32_t coffer__record_python(coffer__record_thread *thread, uint64_t *out, uint32_t depth)
{
    const layout *at = python.at;
    if (!at)
        return 0;
    uintptr_t state = (uintptr_t)python.state();
    if (!state || !make_rows(thread))
        return 0;
    uintptr_t frame = word_at(state, at->state_frame);
    if (frame && at->holder_frame >= 0)
        frame = word_at(frame, (size_t)at->holder_frame);
    uint32_t count = 0;
    for (; frame && count < depth; frame = word_at(frame, at->frame_back)) {
        uint8_t owner = 0;
        if (at->frame_owner >= 0)
            memcpy(&owner, (const void *)(frame + (uintptr_t)at->frame_owner), 1);
        uintptr_t code = word_at(frame, at->frame_code);
        if (owner == OWNED_BY_C || !code || word_at(code, OBJECT_TYPE) != (uintptr_t)python.code_type)
            continue;
        out[count++] = word_of(thread, code, last_of(frame, code));
    }
    return count;
}
