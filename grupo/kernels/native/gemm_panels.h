// Products of few rows with weights that stand in panels: each is read once, in order.
//
// `w` (n, k) as panels: (n / PANEL, k, PANEL), the last filled up with 0. Rows of x are taken TALL at
// a time, their sums in registers, and so many columns of them that they stay near.

#ifndef GRUPO_PANELS
#define GRUPO_PANELS

#include "layer.h"

typedef real vec __attribute__((vector_size(32), aligned(sizeof(real))));

enum { LANES = 32 / sizeof(real), PANEL = 2 * LANES, DEEP = 256, TALL = 6 };

// `rows` of x (rows, k), as many as are known when compiled, times a panel, added to `out`.
static inline __attribute__((always_inline)) void tile(const int rows, n_t k, const real *x,
                                                       n_t ldx, const real *panel, real *out,
                                                       n_t ldo) {
    vec sum[TALL][2];
    for (int r = 0; r < rows; r++) {
        sum[r][0] = *(vec *)(out + r * ldo);
        sum[r][1] = *(vec *)(out + r * ldo + LANES);
    }
    for (n_t i = 0; i < k; i++, panel += PANEL) {
        vec a = *(const vec *)panel, b = *(const vec *)(panel + LANES);
#pragma GCC unroll 6
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

static inline void tiles(n_t rows, n_t k, const real *x, n_t ldx, const real *panel, real *out,
                         n_t ldo) {
    switch (rows) {
    case 1: return tile(1, k, x, ldx, panel, out, ldo);
    case 2: return tile(2, k, x, ldx, panel, out, ldo);
    case 3: return tile(3, k, x, ldx, panel, out, ldo);
    case 4: return tile(4, k, x, ldx, panel, out, ldo);
    case 5: return tile(5, k, x, ldx, panel, out, ldo);
    case 6: return tile(6, k, x, ldx, panel, out, ldo);
    }
}

// The same where `out` has only n columns, less than a panel.
static inline void edge(n_t rows, n_t n, n_t k, const real *x, n_t ldx, const real *panel,
                        real *out, n_t ldo) {
    real whole[TALL * PANEL] = {0};
    for (n_t r = 0; r < rows; r++) memcpy(whole + r * PANEL, out + r * ldo, n * sizeof(real));
    tiles(rows, k, x, ldx, panel, whole, PANEL);
    for (n_t r = 0; r < rows; r++) memcpy(out + r * ldo, whole + r * PANEL, n * sizeof(real));
}

// out (m, n) = x (m, k) w^T + b, of whose w these are the panels
static inline void linear(n_t m, n_t n, n_t k, const real *x, n_t ldx, const real *panels,
                          const real *b, real *out, n_t ldo) {
    for (n_t i = 0; i < m; i++)
        b ? memcpy(out + i * ldo, b, n * sizeof(real)) : memset(out + i * ldo, 0, n * sizeof(real));
    for (n_t j = 0; j < n; j += PANEL)
        for (n_t d = 0; d < k; d += DEEP)
            for (n_t i = 0; i < m; i += TALL) {
                n_t rows = m - i < TALL ? m - i : TALL, deep = k - d < DEEP ? k - d : DEEP;
                const real *some = x + i * ldx + d, *panel = panels + j * k + d * PANEL;
                real *to = out + i * ldo + j;
                if (n - j < PANEL) edge(rows, n - j, deep, some, ldx, panel, to, ldo);
                else tiles(rows, deep, some, ldx, panel, to, ldo);
            }
}

#endif
