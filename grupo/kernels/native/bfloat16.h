// Matrix products of few rows with weights in bfloat16, summed in float32: AVX512-BF16.
//
// The panels of `w` (n, k) have the shape (n / BF_PANEL, k / 2, BF_PANEL, 2): the two numbers of a
// pair are neighbours of one row of `w`. Rows and an odd last column are padded with zeros.

#ifndef GRUPO_BFLOAT16_H
#define GRUPO_BFLOAT16_H

#include "amx.h"

typedef uint16_t bf16;

// As torch rounds: to the nearest, ties to even. NaN stays NaN.
static inline bf16 round_bf16(float x) {
    union { float f; uint32_t i; } bits = {x};
    if (x != x) return 0x7fc0;
    return (bits.i + 0x7fff + ((bits.i >> 16) & 1)) >> 16;
}

// Rounds x (m, k) to `out` (m, ceil(k / 2), 2).
static inline void round_rows(n_t m, n_t k, const real *x, n_t ldx, bf16 *out) {
    n_t width = k + (k & 1);
    for (n_t i = 0; i < m; i++) {
        for (n_t c = 0; c < k; c++) out[i * width + c] = round_bf16(x[i * ldx + c]);
        if (k & 1) out[i * width + k] = 0;
    }
}

#if defined(__AVX512BF16__) && !WIDE

#include <immintrin.h>

enum { BF_PANEL = 32, BF_TILE_ROWS = 8, BF_BLOCK = 256 }; // columns, rows, pairs of columns of x

// Adds x (rows, pairs, 2) times a panel to `out`; `rows` is a compile-time constant.
static inline __attribute__((always_inline)) void tile_bf16(const int rows, n_t pairs,
                                                            const bf16 *x, n_t ldx,
                                                            const bf16 *panel, float *out,
                                                            n_t ldo) {
    __m512 sum[BF_TILE_ROWS][2];
    for (int r = 0; r < rows; r++) {
        sum[r][0] = _mm512_loadu_ps(out + r * ldo);
        sum[r][1] = _mm512_loadu_ps(out + r * ldo + 16);
    }
    for (n_t i = 0; i < pairs; i++, panel += 2 * BF_PANEL) {
        __m512bh a = (__m512bh)_mm512_loadu_si512(panel);
        __m512bh b = (__m512bh)_mm512_loadu_si512(panel + BF_PANEL);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int pair;
            memcpy(&pair, x + r * ldx + 2 * i, sizeof(pair));
            __m512bh both = (__m512bh)_mm512_set1_epi32(pair);
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], both, a);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], both, b);
        }
    }
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_ps(out + r * ldo, sum[r][0]);
        _mm512_storeu_ps(out + r * ldo + 16, sum[r][1]);
    }
}

static inline void tiles_bf16(n_t rows, n_t pairs, const bf16 *x, n_t ldx, const bf16 *panel,
                              float *out, n_t ldo) {
    switch (rows) {
    case 1: return tile_bf16(1, pairs, x, ldx, panel, out, ldo);
    case 2: return tile_bf16(2, pairs, x, ldx, panel, out, ldo);
    case 3: return tile_bf16(3, pairs, x, ldx, panel, out, ldo);
    case 4: return tile_bf16(4, pairs, x, ldx, panel, out, ldo);
    case 5: return tile_bf16(5, pairs, x, ldx, panel, out, ldo);
    case 6: return tile_bf16(6, pairs, x, ldx, panel, out, ldo);
    case 7: return tile_bf16(7, pairs, x, ldx, panel, out, ldo);
    case 8: return tile_bf16(8, pairs, x, ldx, panel, out, ldo);
    }
}

// Adds the product of pairs d..pairs to `out` (m, columns), columns of one panel.
static inline void add_panel(n_t m, n_t columns, n_t d, n_t pairs, const bf16 *x, const bf16 *panel,
                             float *out, n_t ldo) {
    for (; d < pairs; d += BF_BLOCK)
        for (n_t i = 0; i < m; i += BF_TILE_ROWS) {
            n_t rows = m - i < BF_TILE_ROWS ? m - i : BF_TILE_ROWS;
            n_t depth = pairs - d < BF_BLOCK ? pairs - d : BF_BLOCK;
            const bf16 *x_rows = x + 2 * (i * pairs + d), *block = panel + 2 * d * BF_PANEL;
            float *tile = out + i * ldo, padded[BF_TILE_ROWS * BF_PANEL];
            if (columns == BF_PANEL) {
                tiles_bf16(rows, depth, x_rows, 2 * pairs, block, tile, ldo);
                continue;
            }
            memset(padded, 0, sizeof(padded));
            for (n_t r = 0; r < rows; r++)
                memcpy(padded + r * BF_PANEL, tile + r * ldo, columns * sizeof(*out));
            tiles_bf16(rows, depth, x_rows, 2 * pairs, block, padded, BF_PANEL);
            for (n_t r = 0; r < rows; r++)
                memcpy(tile + r * ldo, padded + r * BF_PANEL, columns * sizeof(*out));
        }
}

// out (m, n) = x (m, k) w^T + b for rounded x and w in panels; `b` may be NULL.
static inline void linear_bf16(n_t m, n_t n, n_t k, const bf16 *x, const bf16 *panels,
                               const float *b, float *out, n_t ldo) {
    n_t pairs = (k + 1) / 2, tiled = has_tiles() ? pairs / TILE_PAIRS * TILE_PAIRS : 0;
    if (tiled) shape_tiles(m);
    for (n_t j = 0; j < n; j += BF_PANEL) {
        n_t columns = n - j < BF_PANEL ? n - j : BF_PANEL, done = columns == BF_PANEL ? tiled : 0;
        const bf16 *panel = panels + 2 * j * pairs;
        if (done) panel_product(m, done, x, 2 * pairs, panel, out + j, ldo);
        for (n_t i = 0; i < m; i++) {
            float *row = out + i * ldo + j;
            if (!done) memset(row, 0, columns * sizeof(*row));
            if (b) axpy(columns, 1, b + j, row);
        }
        add_panel(m, columns, done, pairs, x, panel, out + j, ldo);
    }
    if (tiled) release_tiles();
}

#else

enum { BF_PANEL = 0 };

static inline void linear_bf16(n_t m, n_t n, n_t k, const bf16 *x, const bf16 *panels,
                               const real *b, real *out, n_t ldo) {}

#endif
#endif
