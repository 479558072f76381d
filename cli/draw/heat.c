/* Colors and options that pictures and text share. */
#include "heat.h"

#include <math.h>

rgb heat_color(const heat_map *map, double value)
{
    static const rgb empty[] = {
        [COLORMAP_VIRIDIS] = { 226, 226, 230 },
        [COLORMAP_MAGMA] = { 226, 226, 230 },
        [COLORMAP_GRAY] = { 196, 212, 236 },
        [COLORMAP_COOLWARM] = { 150, 150, 150 },
    };
    if (isnan(value))
        return empty[map->palette];
    return colormap_at(map->palette, color_scale_position(&map->scale, value));
}

static double smallest_positive(const heat_map *map)
{
    size_t count = (size_t)map->columns * map->rows;
    double smallest = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (map->cells[i] > 0 && map->cells[i] < smallest)
            smallest = map->cells[i];
    return smallest;
}

int heat_choose_scale(heat_map *map, const cli_args *args, double low, double high)
{
    color_scale *scale = &map->scale;
    scale->logarithmic = cli_has(args, "log");
    low = isnan(low) ? 0 : low;
    high = isnan(high) ? 1 : high;
    if (scale->logarithmic && !(low > 0)) {
        low = smallest_positive(map);
        if (!isfinite(low))
            return cli_usage(args, "--log: no value is larger than 0");
    }
    if (!cli_real(&scale->low, args, "low", low) || !cli_real(&scale->high, args, "high", high))
        return CLI_USAGE;
    if (!(scale->low <= scale->high) || !isfinite(scale->high - scale->low))
        return cli_usage(args, "--low %g is above --high %g", scale->low, scale->high);
    if (scale->logarithmic && !(scale->low > 0))
        return cli_usage(args, "--log needs --low above 0, not %g", scale->low);
    return CLI_OK;
}
