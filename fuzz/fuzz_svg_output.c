/* Drawings and pages are inert, whatever the names in a file are: well-formed, without scripts, elements or
 * control characters of a name. The input is a list of names with NUL between them: a title, then functions
 * and files by turns. */
#include "base/bytes.h"
#include "base/json.h"
#include "base/json_write.h"
#include "coffer/coffer.h"
#include "draw/picture.h"
#include "formats/mlyze/mlyze_layout.h"
#include "mlyze/flame_page.h"
#include "strict_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAMES = 8, LONGEST = 200 };

typedef struct name_list {
    char text[NAMES][LONGEST + 1];
    size_t count;
} name_list;

static void split(name_list *out, const uint8_t *data, size_t size)
{
    size_t start = 0;
    out->count = 0;
    while (out->count < NAMES && start <= size) {
        size_t len = 0;
        while (start + len < size && data[start + len] != '\0')
            len++;
        size_t kept = len < LONGEST ? len : LONGEST;
        memcpy(out->text[out->count], data + start, kept);
        out->text[out->count++][kept] = '\0';
        start += len + 1;
    }
}

/* JSON has no bytes that are not UTF-8; only a title, which comes from the command line, may have them. */
static void put_name(coffer__json_writer *writer, const char *text)
{
    size_t len = coffer__utf8_valid_prefix(text, strlen(text));
    coffer__json_string_len(writer, text, len);
}

static void put_table(coffer__json_writer *writer, const char *key, const name_list *names, size_t first)
{
    char id[24];
    coffer__json_key(writer, key);
    coffer__json_open_object(writer);
    for (size_t i = first; i < names->count; i += 2) {
        snprintf(id, sizeof id, "%zu", i);
        coffer__json_key(writer, id);
        put_name(writer, names->text[i]);
    }
    coffer__json_close_object(writer);
}

/* Stack i ends with the function of name i and has the functions before it as callers. */
static void put_stacks(coffer__json_writer *writer, const name_list *names)
{
    char id[24];
    coffer__json_key(writer, "stack_traces");
    coffer__json_open_object(writer);
    for (size_t i = 1; i < names->count; i += 2) {
        snprintf(id, sizeof id, "%zu", i);
        coffer__json_key(writer, id);
        coffer__json_open_array(writer);
        for (size_t frame = 1; frame <= i; frame += 2) {
            coffer__json_open_object(writer);
            coffer__json_key(writer, "file_id");
            coffer__json_write_u64(writer, frame + 1 < names->count ? frame + 1 : 2);
            coffer__json_key(writer, "line");
            coffer__json_write_u64(writer, frame);
            coffer__json_key(writer, "func_id");
            coffer__json_write_u64(writer, frame);
            coffer__json_close_object(writer);
        }
        coffer__json_close_array(writer);
    }
    coffer__json_close_object(writer);
}

static void put_trace(coffer__buffer *out, const name_list *names)
{
    coffer__buffer json = COFFER__BUFFER_INIT;
    coffer__json_writer writer;
    uint8_t header[COFFER__MLYZE_HEADER_SIZE] = { 0 };
    coffer__json_writer_init(&writer, &json, 0);
    coffer__json_open_object(&writer);
    put_table(&writer, "functions", names, 1);
    put_table(&writer, "files", names, 2);
    put_stacks(&writer, names);
    coffer__json_close_object(&writer);
    memcpy(header, COFFER__MLYZE_MAGIC, COFFER__MLYZE_MAGIC_SIZE);
    coffer__store_u32(header + COFFER__MLYZE_VERSION_AT, COFFER__MLYZE_VERSION);
    coffer__store_u32(header + COFFER__MLYZE_METADATA_LENGTH_AT, (uint32_t)json.len);
    coffer__buffer_append(out, header, sizeof header);
    coffer__buffer_append(out, json.data, json.len);
    for (size_t i = 1; i < names->count; i += 2) { /* ALLOC: type, delta, address, size, stack, thread */
        uint8_t event[14] = { 0, 1, (uint8_t)i, [10] = 100, [11] = (uint8_t)i };
        coffer__buffer_append(out, event, sizeof event);
    }
    MUST(!json.failed && !out->failed);
    coffer__buffer_free(&json);
}

static size_t count_of(const coffer__buffer *page, char wanted)
{
    size_t count = 0;
    for (size_t i = 0; i < page->len; i++)
        count += page->data[i] == (uint8_t)wanted;
    return count;
}

static void check_characters(const coffer__buffer *text)
{
    const uint8_t *at = text->data, *end = at + text->len;
    while (at < end) {
        uint32_t code_point = 0;
        size_t step = coffer__utf8_decode(&code_point, at, end);
        MUST(step > 0 && strict_xml_allowed(code_point));
        at += step;
    }
}

/* The data of a page is JSON, and no name adds a "<" to the page. */
static void check_page(const coffer__buffer *page, size_t elements)
{
    static const char start[] = "type=\"application/json\">", end[] = "</script>";
    coffer_limits limits = COFFER_LIMITS_INIT;
    coffer__json *json = NULL;
    check_characters(page);
    MUST(count_of(page, '<') == elements);
    const char *data = memmem(page->data, page->len, start, sizeof start - 1);
    MUST(data != NULL);
    data += sizeof start - 1;
    const char *after =
        memmem(data, page->len - (size_t)(data - (const char *)page->data), end, sizeof end - 1);
    MUST(after != NULL);
    MUST(coffer__json_parse(&json, data, (size_t)(after - data), 0, &limits, NULL) == COFFER_OK);
    coffer__json_free(json);
}

static void check_picture(const name_list *names)
{
    const picture_font font = { 11, false, { 0, 0, 0 } };
    picture *image = NULL;
    coffer__buffer bytes = COFFER__BUFFER_INIT;
    char shown[80];
    MUST(picture_new(&image, "names.svg", 200, 200, NULL) == COFFER_OK);
    for (size_t i = 0; i < names->count; i++) {
        picture_text(image, 2, 10.0 * (double)i, PICTURE_LEFT, &font, names->text[i]);
        picture_fit_text(shown, sizeof shown, image, &font, i % 2 ? PICTURE_CUT_END : PICTURE_CUT_MIDDLE,
                         names->text[i], 60);
        picture_text_upwards(image, 100, 100, &font, shown);
    }
    MUST(picture_encode(&bytes, image, NULL) == COFFER_OK);
    strict_xml_check(bytes.data, bytes.len);
    coffer__buffer_free(&bytes);
    picture_free(image);
}

/* Draws the trace of these names; gives the number of "<" in its page. */
static size_t draw(const name_list *names, size_t elements)
{
    coffer__buffer bytes = COFFER__BUFFER_INIT, svg = COFFER__BUFFER_INIT, html = COFFER__BUFFER_INIT;
    coffer_source *source = NULL;
    coffer_mlyze *trace = NULL;
    coffer_mlyze_stats *stats = NULL;
    coffer_mlyze_tree *tree = NULL;
    coffer_mlyze_tree_opts opts = COFFER_MLYZE_TREE_OPTS_INIT;
    put_trace(&bytes, names);
    MUST(coffer_source_from_memory(&source, bytes.data, bytes.len, NULL) == COFFER_OK);
    MUST(coffer_mlyze_open(&trace, source, NULL, NULL) == COFFER_OK);
    MUST(coffer_mlyze_stats_new(&stats, trace, NULL, NULL) == COFFER_OK);
    opts.lines = names->count % 2;
    MUST(coffer_mlyze_tree_new(&tree, trace, stats, &opts, NULL) == COFFER_OK);
    MUST(coffer_mlyze_tree_count(tree) == 1 + names->count / 2);
    flame_page page = {
        .tree = tree, .trace = trace, .title = names->text[0], .width = 1200, .lines = opts.lines
    };
    flame_put_svg(&svg, &page);
    flame_put_html(&html, &page);
    MUST(!svg.failed && !html.failed);
    strict_xml_check(svg.data, svg.len);
    size_t found = count_of(&html, '<');
    check_page(&html, elements ? elements : found);
    coffer_mlyze_tree_free(tree);
    coffer_mlyze_stats_free(stats);
    coffer_mlyze_close(trace);
    coffer_source_close(source);
    coffer__buffer_free(&bytes);
    coffer__buffer_free(&svg);
    coffer__buffer_free(&html);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t harmless[] = "title\0main\0main.c";
    static size_t elements;
    name_list names;
    if (!elements) {
        split(&names, harmless, sizeof harmless - 1);
        elements = draw(&names, 0);
    }
    split(&names, data, size);
    draw(&names, elements);
    check_picture(&names);
    return 0;
}
