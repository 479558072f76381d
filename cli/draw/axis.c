#include "axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const picture_font label_font = { 11, false, { 70, 70, 78 } };
static const picture_font title_font = { 12, false, { 30, 30, 36 } };
static const rgb tick_color = { 150, 150, 158 };

enum { TICK_LENGTH = 4 };

static double round_step(double span, size_t wanted)
{
    double rough = span / (double)(wanted ? wanted : 1);
    double power = pow(10, floor(log10(rough)));
    double lead = rough / power;
    return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}

void axis_find_ticks(axis_ticks *out, double low, double high, size_t wanted, bool whole)
{
    out->count = 0;
    out->step = 1;
    if (!(high > low) || !isfinite(high - low)) {
        out->at[out->count++] = low;
        return;
    }
    double step = round_step(high - low, wanted < AXIS_MOST_TICKS / 2 ? wanted : AXIS_MOST_TICKS / 2);
    if (whole && step < 1)
        step = 1;
    out->step = step;
    double first = ceil(low / step - 1e-6), last = floor(high / step + 1e-6);
    size_t count = last < first ? 0 : (size_t)(last - first) + 1;
    out->count = count < AXIS_MOST_TICKS ? count : AXIS_MOST_TICKS;
    for (size_t i = 0; i < out->count; i++)
        out->at[i] = (first + (double)i) * step;
}

void axis_find_log_ticks(axis_ticks *out, double low, double high)
{
    static const double leads[] = { 1, 2, 5 };
    int first = (int)floor(log10(low)), last = (int)ceil(log10(high));
    size_t used = last - first > 4 ? 1 : 3;
    int stride = 1 + (last - first) / (AXIS_MOST_TICKS / 2);
    out->count = 0;
    out->step = 0;
    for (int power = first; power <= last; power += stride)
        for (size_t i = 0; i < used && out->count < AXIS_MOST_TICKS; i++) {
            double at = leads[i] * pow(10, power);
            if (at >= low * 0.999999 && at <= high * 1.000001)
                out->at[out->count++] = at;
        }
}

/* Commas between groups of three digits. */
static void group_digits(char *digits, size_t capacity)
{
    size_t len = strlen(digits), start = digits[0] == '-';
    for (size_t at = len; at > start + 3 && len + 2 < capacity;) {
        at -= 3;
        memmove(digits + at + 1, digits + at, len - at + 1);
        digits[at] = ',';
        len++;
    }
}

const char *axis_format(axis_label out, double value, double step)
{
    double size = fabs(value);
    if (step <= 0)
        step = size;
    if ((size >= 1e7 || (size > 0 && size < 1e-4)) && step != 1) {
        snprintf(out, sizeof(axis_label), "%.3g", value);
    } else if (step >= 1 || value == 0) {
        snprintf(out, sizeof(axis_label), "%.0f", value);
        group_digits(out, sizeof(axis_label));
    } else {
        int decimals = (int)ceil(-log10(step) - 1e-9);
        snprintf(out, sizeof(axis_label), "%.*f", decimals < 8 ? decimals : 8, value);
    }
    return out;
}

void axis_draw_below(picture *canvas, picture_box plot, double low, double high, const char *title)
{
    axis_ticks ticks;
    double bottom = plot.y + plot.height;
    axis_find_ticks(&ticks, low, high - 1, (size_t)(plot.width / 80), true);
    for (size_t i = 0; i < ticks.count; i++) {
        axis_label label;
        double x = plot.x + (ticks.at[i] - low + 0.5) / (high - low) * plot.width;
        picture_line(canvas, x, bottom + 1, x, bottom + 1 + TICK_LENGTH, 1, tick_color);
        picture_text(canvas, x, bottom + TICK_LENGTH + 13, PICTURE_CENTER, &label_font,
                     axis_format(label, ticks.at[i], 1));
    }
    picture_text(canvas, plot.x + plot.width / 2, bottom + TICK_LENGTH + 31, PICTURE_CENTER, &title_font,
                 title);
}

void axis_draw_left(picture *canvas, picture_box plot, double low, double high, const char *title)
{
    axis_ticks ticks;
    double widest = 0;
    axis_find_ticks(&ticks, low, high - 1, (size_t)(plot.height / 26), true);
    for (size_t i = 0; i < ticks.count; i++) {
        axis_label label;
        double y = plot.y + (ticks.at[i] - low + 0.5) / (high - low) * plot.height;
        axis_format(label, ticks.at[i], 1);
        picture_line(canvas, plot.x - 1 - TICK_LENGTH, y, plot.x - 1, y, 1, tick_color);
        picture_text(canvas, plot.x - TICK_LENGTH - 4, y + 4, PICTURE_RIGHT, &label_font, label);
        widest = fmax(widest, picture_text_width(canvas, &label_font, label));
    }
    picture_text_upwards(canvas, plot.x - TICK_LENGTH - widest - 14, plot.y + plot.height / 2, &title_font,
                         title);
}

void axis_draw_color_bar(picture *canvas, picture_box bar, colormap map, const color_scale *scale,
                         const char *title)
{
    enum { SHADES = 256 };
    rgb shades[SHADES];
    axis_ticks ticks;
    double widest = 0;
    for (size_t i = 0; i < SHADES; i++)
        shades[i] = colormap_at(map, 1 - (double)i / (SHADES - 1));
    picture_cells(canvas, bar, shades, 1, SHADES);
    picture_outline(canvas, bar, 1, tick_color);
    ticks.count = 0;
    if (scale->logarithmic)
        axis_find_log_ticks(&ticks, scale->low, scale->high);
    if (ticks.count < 3) /* linear, or less than a decade */
        axis_find_ticks(&ticks, scale->low, scale->high, (size_t)(bar.height / 36), false);
    for (size_t i = 0; i < ticks.count; i++) {
        axis_label label;
        double y = bar.y + (1 - color_scale_position(scale, ticks.at[i])) * bar.height;
        axis_format(label, ticks.at[i], ticks.step);
        picture_line(canvas, bar.x + bar.width + 1, y, bar.x + bar.width + 1 + TICK_LENGTH, y, 1, tick_color);
        picture_text(canvas, bar.x + bar.width + TICK_LENGTH + 4, y + 4, PICTURE_LEFT, &label_font, label);
        widest = fmax(widest, picture_text_width(canvas, &label_font, label));
    }
    picture_text_upwards(canvas, bar.x + bar.width + TICK_LENGTH + widest + 20, bar.y + bar.height / 2,
                         &title_font, title);
}
