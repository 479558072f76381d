/* One tile of a contact sheet: a picture, the wave of a sound, or text. */
#ifndef COFFER_CLI_SHEET_TILE_H
#define COFFER_CLI_SHEET_TILE_H

#include "draw/picture.h"
#include "mldf/sample_file.h"

/* State that all tiles share. */
typedef struct tile_painter {
    picture *canvas;
    sample_reader *reader;
    coffer_image_decoder *decoder;
    coffer_pixels pixels, scaled;
    coffer__buffer text;
} tile_painter;

#define TILE_PAINTER_INIT(canvas, reader)                                                 \
    {                                                                                     \
        canvas, reader, NULL, COFFER_PIXELS_INIT, COFFER_PIXELS_INIT, COFFER__BUFFER_INIT \
    }

void tile_painter_free(tile_painter *painter);

/* Draws the value into the middle of the box and keeps its proportions. An absent value is marked as absent.
 */
coffer_status tile_paint(tile_painter *painter, picture_box box, uint64_t sample, size_t index,
                         coffer_error *err);
/* Text in lines from the top of the box, cut where it ends. */
void tile_paint_text(tile_painter *painter, picture_box box, const char *text, rgb color);

#endif
