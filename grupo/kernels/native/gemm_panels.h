// Matrix products of few rows with weights packed into panels, which are read once, in order.
//
// The panels of `w` (n, k) have the shape (n / PANEL, k, PANEL); the last is padded with zeros.
// MAX_TILE_ROWS rows of x are multiplied at a time with their sums in registers, and K_BLOCK of
// their columns, so that a block of a panel stays in the first-level cache while all rows are
// multiplied with it. The next block is fetched meanwhile.

#ifndef GRUPO_GEMM_PANELS_H
#define GRUPO_GEMM_PANELS_H

#include "layer.h"

// The sums of a tile, two vectors of the weights and one of x fill the registers.
#ifndef VECTOR_BYTES
#ifdef __AVX512F__
#define VECTOR_BYTES 64
#else
#define VECTOR_BYTES 32
#endif
#endif

typedef real vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(real))));

enum { LANES = VECTOR_BYTES / sizeof(real), PANEL = 2 * LANES };
enum { BLOCK_BYTES = 24 << 10, K_BLOCK = BLOCK_BYTES / sizeof(real) / PANEL };
enum { MAX_TILE_ROWS = VECTOR_BYTES == 64 ? 12 : 6 };

// Without it, compilers read the weights from memory again for every row of x.
#if defined(__AVX512F__) && VECTOR_BYTES == 64
#define KEEP_IN_REGISTER(v) __asm__("" : "+v"(v))
#elif defined(__AVX__) && VECTOR_BYTES == 32
#define KEEP_IN_REGISTER(v) __asm__("" : "+x"(v))
#else
#define KEEP_IN_REGISTER(v)
#endif

// Adds x (rows, k) times a panel to `out`; `rows` is a compile-time constant.
static inline __attribute__((always_inline)) void tile(const int rows, n_t k, const real *x,
                                                       n_t ldx, const real *panel, real *out,
                                                       n_t ldo) {
    vec sum[MAX_TILE_ROWS][2];
    for (int r = 0; r < rows; r++) {
        sum[r][0] = *(vec *)(out + r * ldo);
        sum[r][1] = *(vec *)(out + r * ldo + LANES);
    }
    for (n_t i = 0; i < k; i++, panel += PANEL) {
        __builtin_prefetch(panel + K_BLOCK * PANEL, 0, 2);
        vec a = *(const vec *)panel, b = *(const vec *)(panel + LANES);
        KEEP_IN_REGISTER(a);
        KEEP_IN_REGISTER(b);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            sum[r][0] += x[r * ldx + i] * a;
            sum[r][1] += x[r * ldx + i] * b;
        }
    }
    for (int r = 0; r < rows; r++) {
        *(vec *)(out + r * ldo) = sum[r][0];
        *(vec *)(out + r * ldo + LANES) = sum[r][1];
    }
}

// `tile` for a number of rows that is not a compile-time constant.
static inline void tiles(n_t rows, n_t k, const real *x, n_t ldx, const real *panel, real *out,
                         n_t ldo) {
    switch (rows) {
    case 1: return tile(1, k, x, ldx, panel, out, ldo);
    case 2: return tile(2, k, x, ldx, panel, out, ldo);
    case 3: return tile(3, k, x, ldx, panel, out, ldo);
    case 4: return tile(4, k, x, ldx, panel, out, ldo);
    case 5: return tile(5, k, x, ldx, panel, out, ldo);
    case 6: return tile(6, k, x, ldx, panel, out, ldo);
#if VECTOR_BYTES == 64
    case 7: return tile(7, k, x, ldx, panel, out, ldo);
    case 8: return tile(8, k, x, ldx, panel, out, ldo);
    case 9: return tile(9, k, x, ldx, panel, out, ldo);
    case 10: return tile(10, k, x, ldx, panel, out, ldo);
    case 11: return tile(11, k, x, ldx, panel, out, ldo);
    case 12: return tile(12, k, x, ldx, panel, out, ldo);
#endif
    }
}

// `tiles` for the last panel, of which `out` has only n columns.
static inline void partial_tile(n_t rows, n_t n, n_t k, const real *x, n_t ldx, const real *panel,
                                real *out, n_t ldo) {
    real padded[MAX_TILE_ROWS * PANEL] = {0};
    for (n_t r = 0; r < rows; r++) memcpy(padded + r * PANEL, out + r * ldo, n * sizeof(real));
    tiles(rows, k, x, ldx, panel, padded, PANEL);
    for (n_t r = 0; r < rows; r++) memcpy(out + r * ldo, padded + r * PANEL, n * sizeof(real));
}

// out (m, n) = x (m, k) w^T + b for w in panels; `b` may be NULL.
static inline void linear(n_t m, n_t n, n_t k, const real *x, n_t ldx, const real *panels,
                          const real *b, real *out, n_t ldo) {
    for (n_t i = 0; i < m; i++)
        b ? memcpy(out + i * ldo, b, n * sizeof(real)) : memset(out + i * ldo, 0, n * sizeof(real));
    n_t count = (m + MAX_TILE_ROWS - 1) / MAX_TILE_ROWS; // tiles of about equally many rows
    for (n_t j = 0; j < n; j += PANEL)
        for (n_t d = 0; d < k; d += K_BLOCK)
            for (n_t t = 0; t < count; t++) {
                n_t i = t * m / count, rows = (t + 1) * m / count - i;
                n_t depth = k - d < K_BLOCK ? k - d : K_BLOCK;
                const real *x_rows = x + i * ldx + d, *panel = panels + j * k + d * PANEL;
                real *out_tile = out + i * ldo + j;
                if (n - j < PANEL)
                    partial_tile(rows, n - j, depth, x_rows, ldx, panel, out_tile, ldo);
                else tiles(rows, depth, x_rows, ldx, panel, out_tile, ldo);
            }
}

#endif
