#include "colormap.h"

#include <math.h>

enum { POINTS = 9 };

/* Control points at equal distances. Computed in OKLCH along a path of hues with evenly growing lightness,
 * chroma reduced to what sRGB can show. */
static const rgb control_points[][POINTS] = {
    [COLORMAP_VIRIDIS] = { { 57, 4, 74 },
                           { 63, 37, 112 },
                           { 56, 71, 143 },
                           { 33, 107, 158 },
                           { 7, 141, 157 },
                           { 6, 175, 145 },
                           { 94, 202, 117 },
                           { 173, 221, 80 },
                           { 246, 235, 50 } },
    [COLORMAP_MAGMA] = { { 3, 2, 12 },
                         { 27, 9, 62 },
                         { 66, 19, 108 },
                         { 119, 30, 134 },
                         { 183, 43, 124 },
                         { 235, 78, 91 },
                         { 254, 138, 89 },
                         { 254, 197, 129 },
                         { 254, 248, 193 } },
    [COLORMAP_GRAY] = { { 11, 11, 11 },
                        { 34, 34, 34 },
                        { 60, 60, 60 },
                        { 87, 87, 87 },
                        { 116, 116, 116 },
                        { 147, 147, 147 },
                        { 178, 178, 178 },
                        { 211, 211, 211 },
                        { 245, 245, 245 } },
    [COLORMAP_COOLWARM] = { { 37, 77, 172 },
                            { 69, 120, 202 },
                            { 114, 161, 221 },
                            { 169, 199, 232 },
                            { 235, 235, 235 },
                            { 228, 184, 166 },
                            { 215, 135, 106 },
                            { 192, 83, 61 },
                            { 155, 31, 29 } },
};

static uint8_t mix(uint8_t a, uint8_t b, double share)
{
    return (uint8_t)lround(a + ((double)b - a) * share);
}

rgb colormap_at(colormap map, double t)
{
    const rgb *points = control_points[map];
    double place = (t > 0 ? (t < 1 ? t : 1) : 0) * (POINTS - 1);
    int below = place < POINTS - 1 ? (int)place : POINTS - 2;
    double share = place - below;
    const rgb *a = &points[below], *b = &points[below + 1];
    return (rgb){ mix(a->red, b->red, share), mix(a->green, b->green, share), mix(a->blue, b->blue, share) };
}

double color_scale_position(const color_scale *scale, double value)
{
    double low = scale->low, high = scale->high;
    if (scale->logarithmic) {
        low = log(low);
        high = log(high);
        value = value > 0 ? log(value) : low;
    }
    if (!(high > low))
        return 0.5;
    double t = (value - low) / (high - low);
    return t > 0 ? (t < 1 ? t : 1) : 0;
}
