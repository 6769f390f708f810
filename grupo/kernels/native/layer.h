// What a Llama-shaped layer works out of one token.
//
// A record is all that a layer works out of one token, side by side:
//   x | q k v | seen | total | y | gate up
// what it reads (h), queries, keys and values as projected ((H + 2K) d), what attention has seen
// (H d) with its log-normalisers (H), what is read after that (h), and both of the MLP's (2 I).

#ifndef GRUPO_ROWS
#define GRUPO_ROWS

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <omp.h>

typedef REAL real;
typedef int64_t n_t;

typedef void gemm_t(const char *, const char *, const int *, const int *, const int *, const real *,
                    const real *, const int *, const real *, const int *, const real *, real *,
                    const int *);

typedef struct {
    gemm_t *gemm;
    int (*alone)(int); // how many threads the products of this thread may have
    n_t threads, layers, h, H, K, d, I;
    double eps;
} Shape;

typedef struct {
    const real *norm, *q, *k, *v, *qb, *kb, *vb, *qn, *kn, *o, *norm2, *gate, *up, *down;
    double scale;
    n_t window;
} Layer;

typedef struct { n_t qkv, seen, total, y, gate, width; } Place;

static inline Place place(const Shape *s) {
    n_t qkv = s->h, seen = qkv + (s->H + 2 * s->K) * s->d, total = seen + s->H * s->d;
    n_t y = total + s->H, gate = y + s->h;
    return (Place){qkv, seen, total, y, gate, gate + 2 * s->I};
}

// ---- single rows -------------------------------------------------------------------------------

#if WIDE
static inline double expo(double x) { // 2^n times a polynomial; off by 2 in the last place
    x = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    union { double f; uint64_t i; } n = {x * 1.4426950408889634 + 0x1.8p52}; // n is its last bits
    double whole = n.f - 0x1.8p52, p = 1.0 / 6227020800;
    double r = (x - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    union { uint64_t i; double f; } power = {(n.i + 1023) << 52};
    return (p * r * r + r + 1.0) * power.f;
}
#else
static inline float expo(float given) { // 2^n times a polynomial; off by 2 in the last place
    float x = given < -87.0f ? -87.0f : given > 88.0f ? 88.0f : given;
    float n = rintf(x * 1.44269504f);
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    union { int32_t i; float f; } power = {((int32_t)n + 127) << 23};
    return given < -87.0f ? 0.0f : (p * r * r + r + 1.0f) * power.f;
}
#endif

static inline real dot(n_t n, const real *a, const real *b) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (n_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static inline void add(n_t n, real by, const real *a, real *into) {
#pragma omp simd
    for (n_t i = 0; i < n; i++) into[i] += by * a[i];
}

static inline real rms(n_t n, const real *x, double eps) {
    return 1 / sqrt(dot(n, x, x) / n + eps);
}

static inline void norm(n_t n, const real *x, const real *w, double eps, real *out) {
    real r = rms(n, x, eps);
#pragma omp simd
    for (n_t i = 0; i < n; i++) out[i] = w[i] * (x[i] * r);
}

static inline void norm_back(n_t n, const real *x, const real *w, double eps, const real *slope,
                             real *dx, real *dw) { // into dx and dw, which hold something already
    real r = rms(n, x, eps), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (n_t i = 0; i < n; i++) sum += slope[i] * w[i] * x[i];
    real by = sum * r * r * r / n;
#pragma omp simd
    for (n_t i = 0; i < n; i++) {
        dw[i] += slope[i] * x[i] * r;
        dx[i] += slope[i] * w[i] * r - by * x[i];
    }
}

static inline void rope(n_t d, const real *x, const real *cos, const real *sin, real *out) {
    n_t half = d / 2;
#pragma omp simd
    for (n_t i = 0; i < half; i++) {
        real a = x[i], b = x[i + half];
        out[i] = a * cos[i] - b * sin[i];
        out[i + half] = b * cos[i + half] + a * sin[i + half];
    }
}

static inline void rope_back(n_t d, const real *slope, const real *cos, const real *sin,
                             real *out) {
    n_t half = d / 2;
#pragma omp simd
    for (n_t i = 0; i < half; i++) {
        real a = slope[i], b = slope[i + half];
        out[i] = a * cos[i] + b * sin[i + half];
        out[i + half] = b * cos[i + half] - a * sin[i];
    }
}

static inline void swiglu(n_t n, const real *gate, const real *up, real *out) {
#pragma omp simd
    for (n_t i = 0; i < n; i++) out[i] = gate[i] / (1 + expo(-gate[i])) * up[i];
}

static inline void swiglu_back(n_t n, const real *gate, const real *up, const real *slope,
                               real *dgate, real *dup) {
#pragma omp simd
    for (n_t i = 0; i < n; i++) {
        real s = 1 / (1 + expo(-gate[i])), a = gate[i] * s;
        dup[i] = slope[i] * a;
        dgate[i] = slope[i] * up[i] * (s + a * (1 - s));
    }
}

// Scores become probabilities; the logarithm of their normaliser.
static inline real soften(n_t n, real *x) {
    real top = x[0], sum = 0;
    for (n_t i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
#pragma omp simd reduction(+ : sum)
    for (n_t i = 0; i < n; i++) sum += x[i] = expo(x[i] - top);
    real by = 1 / sum;
#pragma omp simd
    for (n_t i = 0; i < n; i++) x[i] *= by;
    return top + log(sum);
}

#endif
