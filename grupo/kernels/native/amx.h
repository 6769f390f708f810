// Matrix products with panels in bfloat16 on the tile registers of AMX: 16 rows of x times 16 columns
// of a panel at a time, summed in float32.
//
// A tile of x is 16 rows of 32 neighbouring numbers, as they lie in memory; a tile of a panel is 16
// pairs of 16 columns, which is the order of the panels of `bfloat16.h`.

#ifndef GRUPO_AMX_H
#define GRUPO_AMX_H

#include "layer.h"

enum { TILE_ROWS = 16, TILE_COLUMNS = 16, TILE_PAIRS = 16 };

#if defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__) && !WIDE

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18, PREFETCHED_BYTES = 32 << 10 };

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} TileShapes;

// Whether the operating system lets this process use the tile registers; it is asked once.
static inline int has_tiles(void) {
    static int granted = -1;
    if (granted < 0) granted = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
    return granted;
}

// For a product of m rows: tiles 0 to 3 are sums, 4 and 5 hold rows of x, 6 and 7 columns of a panel.
static inline void shape_tiles(n_t m) {
    n_t rows = m < TILE_ROWS ? m : TILE_ROWS;
    TileShapes shapes = {.palette = 1};
    for (int t = 0; t < 8; t++) shapes.row_bytes[t] = 64, shapes.rows[t] = t < 6 ? rows : TILE_PAIRS;
    _tile_loadconfig(&shapes);
}

static inline void release_tiles(void) { _tile_release(); }

// Writes x (rows, 2 * pairs) times a panel of 32 columns to `out`, for one or two tiles of rows.
// `pairs` is a multiple of TILE_PAIRS.
static inline __attribute__((always_inline)) void multiply_tiles(const int two, n_t pairs,
                                                                 const uint16_t *x,
                                                                 const uint16_t *x2, n_t ldx,
                                                                 const uint16_t *panel, float *out,
                                                                 float *out2, n_t ldo) {
    const n_t block = TILE_PAIRS * 4 * TILE_COLUMNS; // numbers of a panel
    _tile_zero(0);
    _tile_zero(1);
    if (two) { _tile_zero(2); _tile_zero(3); }
    for (n_t i = 0; i < pairs; i += TILE_PAIRS, panel += block) {
        for (n_t line = 0; line < block; line += 32)
            __builtin_prefetch(panel + line + PREFETCHED_BYTES / 2, 0, 2);
        _tile_loadd(6, panel, 128);
        _tile_loadd(7, panel + 32, 128);
        _tile_loadd(4, x + 2 * i, 2 * ldx);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        if (!two) continue;
        _tile_loadd(5, x2 + 2 * i, 2 * ldx);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, out, 4 * ldo);
    _tile_stored(1, out + TILE_COLUMNS, 4 * ldo);
    if (!two) return;
    _tile_stored(2, out2, 4 * ldo);
    _tile_stored(3, out2 + TILE_COLUMNS, 4 * ldo);
}

// out (m, 32) = x (m, 2 * pairs) times one panel. The last tile of rows overlaps the one before it.
static inline void panel_product(n_t m, n_t pairs, const uint16_t *x, n_t ldx, const uint16_t *panel,
                                 float *out, n_t ldo) {
    n_t rows = m < TILE_ROWS ? m : TILE_ROWS;
    for (n_t i = 0; i < m; i += 2 * TILE_ROWS) {
        n_t a = i + rows < m ? i : m - rows, b = a + 2 * rows < m ? a + rows : m - rows;
        const uint16_t *x_a = x + a * ldx, *x_b = x + b * ldx;
        if (b > a) multiply_tiles(1, pairs, x_a, x_b, ldx, panel, out + a * ldo, out + b * ldo, ldo);
        else multiply_tiles(0, pairs, x_a, x_a, ldx, panel, out + a * ldo, out + a * ldo, ldo);
    }
}

#else

static inline int has_tiles(void) { return 0; }
static inline void shape_tiles(n_t m) {}
static inline void release_tiles(void) {}
static inline void panel_product(n_t m, n_t pairs, const uint16_t *x, n_t ldx, const uint16_t *panel,
                                 float *out, n_t ldo) {}

#endif
#endif
