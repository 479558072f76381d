/* sheet, for training sets: random samples as a picture, with their labels. */
#include "base/fail.h"
#include "base/memory.h"
#include "mldf/mldf_verbs.h"
#include "mldf/sample_place.h"
#include "mldf/sheet_tile.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

static const cli_option options[] = {
    { "output", 'o', "FILE", NULL, "output file, .png or .svg" },
    CLI_FORCE_OPTION,
    { "max", 'n', "N", NULL, "number of samples", "24", mldf_max_old },
    { "columns", 0, "N", NULL, "tiles per row", "6" },
    { "size", 0, "N", NULL, "width and height of a tile in pixels", "160" },
    { "seed", 0, "N", NULL, "seed of the random choice of samples", "0" },
    { "samples", 0, "A..B", NULL, "samples A to B - 1 instead of random ones" },
    { "field", 0, "NAME", NULL, "field to show; repeatable, one tile for each",
      "the first picture, sound or text" },
    { "label", 0, "NAME", NULL, "field to write under a tile", "label, class or the first integer" },
    CLI_KEY_OPTION,
    CLI_DAMAGED_OPTION,
    { 0 },
};

enum { MARGIN = 16, GAP = 10, TITLE = 30, CAPTION = 20, CAPTION_MAX = 300 };

static const rgb ink = { 30, 30, 30 }, quiet = { 120, 120, 120 }, red = { 178, 24, 43 };

typedef struct sheet_job {
    const cli_args *args;
    const coffer_mldf *set;
    sample_reader *reader; /* with the fields to show */
    const char *path, *output;
    size_t label; /* SIZE_MAX = none */
    uint64_t count, columns, size, seed;
    uint64_t first; /* with --samples */
    bool is_range;
    uint64_t unreadable;
    coffer_error first_error;
    bool is_content; /* the first error: the value was read, but cannot be decoded */
} sheet_job;

/* ---- Choosing samples and fields ---- */

static size_t first_of_kind(const coffer_mldf *set, coffer_mldf_entry_kind kind)
{
    for (size_t i = 0; i < coffer_mldf_field_count(set); i++)
        if (coffer_mldf_field_at(set, i)->kind == kind)
            return i;
    return SIZE_MAX;
}

static size_t default_field(const coffer_mldf *set)
{
    static const coffer_mldf_entry_kind kinds[] = { COFFER_MLDF_ENTRY_IMAGE, COFFER_MLDF_ENTRY_AUDIO,
                                                    COFFER_MLDF_ENTRY_TEXT };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (first_of_kind(set, kinds[i]) != SIZE_MAX)
            return first_of_kind(set, kinds[i]);
    return 0;
}

static size_t default_label(const coffer_mldf *set, size_t shown)
{
    static const char *const names[] = { "class", "label", "caption", "text", "target" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t field = coffer_mldf_find_field(set, names[i]);
        if (field != SIZE_MAX && field != shown)
            return field;
    }
    size_t number = first_of_kind(set, COFFER_MLDF_ENTRY_INT);
    return number != shown ? number : SIZE_MAX;
}

static int read_fields(sheet_job *job)
{
    const char *label = cli_value(job->args, "label");
    if (coffer_mldf_field_count(job->set) == 0 || coffer_mldf_sample_count(job->set) == 0)
        return cli_usage(job->args, "%s has nothing to show", job->path);
    int result = sample_fields_read(job->reader, job->args);
    if (!result && !job->reader->fields)
        result = sample_field_choose(job->reader, job->args, default_field(job->set));
    if (result)
        return result;
    job->label = default_label(job->set, job->reader->fields[0]);
    return label ? sample_field_find(&job->label, job->args, job->set, label) : CLI_OK;
}

static uint64_t tile_count(const sheet_job *job)
{
    return job->count * job->reader->field_count;
}

static int read_options(sheet_job *job)
{
    uint64_t samples = coffer_mldf_sample_count(job->set), begin = 0, end = UINT64_MAX;
    if (!job->output || !picture_can_write(job->output))
        return cli_usage(job->args, "-o must name a picture: a file that ends in .png or .svg");
    if (!cli_number(&job->count, job->args, "max", 24, 1, 10000) ||
        !cli_number(&job->columns, job->args, "columns", 6, 1, 200) ||
        !cli_number(&job->size, job->args, "size", 160, 32, 2048) ||
        !cli_number(&job->seed, job->args, "seed", 0, 0, UINT64_MAX) ||
        !cli_range(&begin, &end, job->args, "samples"))
        return CLI_USAGE;
    job->is_range = cli_has(job->args, "samples");
    if (job->is_range && begin >= samples)
        return cli_usage(job->args, "--samples begins at %" PRIu64 "; %s has samples up to %" PRIu64, begin,
                         job->path, samples - 1);
    if (job->is_range) {
        job->first = begin;
        uint64_t in_range = (end < samples ? end : samples) - begin;
        if (!cli_has(job->args, "max") || job->count > in_range)
            job->count = in_range < 10000 ? in_range : 10000;
    }
    if (job->count > samples)
        job->count = samples;
    uint64_t tiles = tile_count(job);
    if (tiles == 0)
        return cli_usage(job->args, "%s has nothing to show", job->path);
    if (job->columns > tiles)
        job->columns = tiles;
    return CLI_OK;
}

static uint64_t sample_of(const sheet_job *job, uint64_t tile)
{
    return job->is_range ? job->first + tile
                         : coffer_mldf_shuffle_at(coffer_mldf_sample_count(job->set), job->seed, 0, tile);
}

/* ---- Drawing ---- */

static void draw_caption(const sheet_job *job, tile_painter *painter, picture_box tile, uint64_t sample)
{
    const picture_font number = { 11, false, quiet }, font = { 13, false, ink };
    char text[32], fitted[CAPTION_MAX];
    double y = tile.y + tile.height + 15;
    snprintf(text, sizeof text, "%" PRIu64, sample);
    picture_text(painter->canvas, tile.x + tile.width, y, PICTURE_RIGHT, &number, text);
    double room = tile.width - picture_text_width(painter->canvas, &number, text) - 8;
    painter->text.len = 0;
    if (job->label == SIZE_MAX ||
        sample_put_text(&painter->text, painter->reader, sample, job->label, NULL) != COFFER_OK)
        return;
    picture_fit_text(fitted, sizeof fitted, painter->canvas, &font, PICTURE_CUT_END,
                     coffer__buffer_text(&painter->text), room);
    picture_text(painter->canvas, tile.x, y, PICTURE_LEFT, &font, fitted);
}

static void keep_error(sheet_job *job, const coffer_error *found, bool undecodable, uint64_t sample)
{
    job->is_content = undecodable;
    if (undecodable)
        coffer__fail(&job->first_error, found->status, COFFER_OFFSET_NONE, "sample %" PRIu64 ": %s", sample,
                     found->text);
    else
        job->first_error = *found;
}

/* A sample that cannot be read has its tile all the same, with the reason in it. */
static coffer_status draw_tile(sheet_job *job, tile_painter *painter, picture_box tile, uint64_t index,
                               coffer_error *err)
{
    coffer_error found = COFFER_ERROR_INIT;
    uint64_t sample = sample_of(job, index / job->reader->field_count);
    size_t field = job->reader->fields[index % job->reader->field_count];
    bool undecodable = false;
    coffer_status status = tile_paint(painter, tile, sample, field, &undecodable, &found);
    if (status && !coffer__is_about_file(status) && status != COFFER_E_UNSUPPORTED) {
        *err = found;
        return status;
    }
    if (status) {
        if (job->unreadable++ == 0)
            keep_error(job, &found, undecodable, sample);
        picture_outline(painter->canvas,
                        (picture_box){ tile.x + 1, tile.y + 1, tile.width - 2, tile.height - 2 }, 1, red);
        tile_paint_text(painter, tile, found.text, red);
    }
    draw_caption(job, painter, tile, sample);
    return COFFER_OK;
}

static void draw_title(const sheet_job *job, picture *canvas, double width)
{
    const picture_font bold = { 15, true, ink }, plain = { 13, false, quiet };
    char text[160], fitted[CAPTION_MAX];
    term_text of;
    const char *slash = strrchr(job->path, '/');
    size_t len = 0;
    for (size_t i = 0; i < job->reader->field_count && len < sizeof text; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s, ",
                                coffer_mldf_field_at(job->set, job->reader->fields[i])->name);
    if (len < sizeof text)
        snprintf(text + len, sizeof text - len, "%" PRIu64 " of %s samples", job->count,
                 term_count(of, coffer_mldf_sample_count(job->set)));
    double right = picture_text_width(canvas, &plain, text);
    bool fits = right < width / 2;
    picture_fit_text(fitted, sizeof fitted, canvas, &bold, PICTURE_CUT_MIDDLE, slash ? slash + 1 : job->path,
                     fits ? width - right - GAP : width);
    picture_text(canvas, MARGIN, MARGIN + 15, PICTURE_LEFT, &bold, fitted);
    if (fits)
        picture_text(canvas, MARGIN + width, MARGIN + 15, PICTURE_RIGHT, &plain, text);
}

static coffer_status draw(sheet_job *job, coffer_error *err)
{
    uint64_t tiles = tile_count(job), rows = (tiles + job->columns - 1) / job->columns;
    uint64_t width = job->columns * (job->size + GAP) - GAP;
    uint64_t height = TITLE + rows * (job->size + CAPTION + GAP) - GAP;
    picture *canvas = NULL;
    coffer_status status = picture_new(&canvas, job->output, (unsigned)(width + 2 * MARGIN),
                                       (unsigned)(height + 2 * MARGIN), err);
    if (status)
        return status;
    tile_painter painter = TILE_PAINTER_INIT(canvas, job->reader);
    term_progress bar;
    draw_title(job, canvas, (double)width);
    term_progress_start(&bar, "drawing", "tiles");
    for (uint64_t i = 0; i < tiles && !status; i++) {
        uint64_t row = i / job->columns, column = i % job->columns;
        picture_box tile = { MARGIN + (double)(column * (job->size + GAP)),
                             MARGIN + TITLE + (double)(row * (job->size + CAPTION + GAP)), (double)job->size,
                             (double)job->size };
        status = draw_tile(job, &painter, tile, i, err);
        bar.progress.step(&bar, i + 1, tiles);
    }
    term_progress_end(&bar);
    tile_painter_free(&painter);
    if (!status)
        return picture_save(canvas, err);
    picture_free(canvas);
    return status;
}

static int run_on(const cli_args *args, const coffer_mldf *set, const cli_key *key)
{
    sample_reader reader = SAMPLE_READER_INIT(set, key->at != NULL);
    sheet_job job = { .args = args,
                      .set = set,
                      .columns = 1,
                      .reader = &reader,
                      .path = cli_operand(args, 0),
                      .output = cli_value(args, "output") };
    coffer_error err = COFFER_ERROR_INIT;
    int result = read_fields(&job);
    if (!result)
        result = read_options(&job);
    coffer_status status = result ? COFFER_OK : draw(&job, &err);
    sample_reader_free(&reader);
    if (result)
        return result;
    if (status == COFFER_E_INVALID_ARGUMENT)
        return cli_usage(args, "%s: fewer --columns, or a smaller --size or --max", err.text);
    if (status)
        return mldf_fail_between(job.path, job.output, &err);
    if (job.unreadable == 0)
        return CLI_OK;
    term_text count;
    fprintf(stderr, "%scoffer:%s samples that could not be shown: %s\n", term_on(stderr, TERM_YELLOW),
            term_off(stderr), term_count(count, job.unreadable));
    return job.is_content ? cli_fail(job.path, &job.first_error,
                                     "it is stored as it was packed; 'coffer delete' takes samples out")
                          : mldf_fail(job.path, &job.first_error);
}

static int run(const cli_args *args, coffer_source *src)
{
    return mldf_with_set(args, src, run_on);
}

const cli_format_verb cli_mldf_sheet = {
    .format = "mldf",
    .verb = "sheet",
    .options = options,
    .examples = "  coffer sheet train.mldf -o sheet.png              # 24 random samples with their labels\n"
                "  coffer sheet train.mldf -o sheet.png --seed 7 -n 100 --columns 10 --size 96\n"
                "  coffer sheet speech.mldf -o sheet.svg --field audio --label transcript\n",
    .run = run,
};
