// One Llama-style layer, token by token.
//
// The activations of a layer for one token are stored side by side in one row:
//   x | q k v | attn_out | lse | residual | gate up
// layer input (h), queries, keys and values before rotation ((H + 2K) d), attention output (H d),
// log-sum-exp of the scores of each head (H), residual stream after attention (h), and both MLP
// projections (2 I). h: hidden size, H: query heads, K: key heads, d: head size, I: MLP size.

#ifndef GRUPO_LAYER_H
#define GRUPO_LAYER_H

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
    int (*set_threads)(int); // MKL's limit for this thread, or NULL; returns the old one
    n_t threads, layers, h, H, K, d, I;
    double eps;
} ModelShape;

typedef struct {
    const real *norm, *q, *k, *v, *qb, *kb, *vb, *qn, *kn, *o, *norm2, *gate, *up, *down;
    double scale;
    n_t window;
} LayerPointers;

typedef struct { n_t qkv, attn_out, lse, residual, gate, width; } ActivationOffsets;

static inline ActivationOffsets activation_offsets(const ModelShape *s) {
    n_t qkv = s->h, attn_out = qkv + (s->H + 2 * s->K) * s->d, lse = attn_out + s->H * s->d;
    n_t residual = lse + s->H, gate = residual + s->h;
    return (ActivationOffsets){qkv, attn_out, lse, residual, gate, gate + 2 * s->I};
}

// ---- single rows -------------------------------------------------------------------------------

#if WIDE
static inline double fast_exp(double x) { // 2^n times a polynomial, within 2 ulp
    x = x < -708.0 ? -708.0 : x > 709.0 ? 709.0 : x;
    union { double f; uint64_t i; } n = {x * 1.4426950408889634 + 0x1.8p52}; // n: the low bits
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
static inline float fast_exp(float arg) { // 2^n times a polynomial, within 2 ulp
    float x = arg < -87.0f ? -87.0f : arg > 88.0f ? 88.0f : arg;
    float n = rintf(x * 1.44269504f);
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    union { int32_t i; float f; } power = {((int32_t)n + 127) << 23};
    return arg < -87.0f ? 0.0f : (p * r * r + r + 1.0f) * power.f;
}
#endif

// Compilers add the sums of a simd reduction one after another; these are added by halves.
typedef real lanes_t __attribute__((vector_size(64), aligned(sizeof(real))));
enum { NUM_SUMS = 64 / sizeof(real) };

static inline real dot(n_t n, const real *a, const real *b) {
    lanes_t sums = {0};
    n_t i = 0;
    for (; i + NUM_SUMS <= n; i += NUM_SUMS)
        sums += *(const lanes_t *)(a + i) * *(const lanes_t *)(b + i);
    real half[NUM_SUMS], rest = 0;
    *(lanes_t *)half = sums;
#pragma GCC unroll 4
    for (int width = NUM_SUMS / 2; width; width /= 2)
#pragma GCC unroll 8
        for (int j = 0; j < width; j++) half[j] += half[j + width];
    for (; i < n; i++) rest += a[i] * b[i];
    return half[0] + rest;
}

static inline void axpy(n_t n, real factor, const real *a, real *out) {
#pragma omp simd
    for (n_t i = 0; i < n; i++) out[i] += factor * a[i];
}

static inline real inverse_rms(n_t n, const real *x, double eps) {
    return 1 / sqrt(dot(n, x, x) / n + eps);
}

static inline void norm(n_t n, const real *x, const real *w, double eps, real *out) {
    real r = inverse_rms(n, x, eps);
#pragma omp simd
    for (n_t i = 0; i < n; i++) out[i] = w[i] * (x[i] * r);
}

// Adds the gradients to `dx` (n) and `dw` (n).
static inline void norm_backward(n_t n, const real *x, const real *w, double eps,
                                 const real *grad_out, real *dx, real *dw) {
    real r = inverse_rms(n, x, eps), sum = 0;
#pragma omp simd reduction(+ : sum)
    for (n_t i = 0; i < n; i++) sum += grad_out[i] * w[i] * x[i];
    real factor = sum * r * r * r / n;
#pragma omp simd
    for (n_t i = 0; i < n; i++) {
        dw[i] += grad_out[i] * x[i] * r;
        dx[i] += grad_out[i] * w[i] * r - factor * x[i];
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

static inline void rope_backward(n_t d, const real *grad_out, const real *cos, const real *sin,
                                 real *out) {
    n_t half = d / 2;
#pragma omp simd
    for (n_t i = 0; i < half; i++) {
        real a = grad_out[i], b = grad_out[i + half];
        out[i] = a * cos[i] + b * sin[i + half];
        out[i + half] = b * cos[i + half] - a * sin[i];
    }
}

static inline void swiglu(n_t n, const real *gate, const real *up, real *out) {
#pragma omp simd
    for (n_t i = 0; i < n; i++) out[i] = gate[i] / (1 + fast_exp(-gate[i])) * up[i];
}

static inline void swiglu_backward(n_t n, const real *gate, const real *up, const real *grad_out,
                                   real *dgate, real *dup) {
#pragma omp simd
    for (n_t i = 0; i < n; i++) {
        real s = 1 / (1 + fast_exp(-gate[i])), a = gate[i] * s;
        dup[i] = grad_out[i] * a;
        dgate[i] = grad_out[i] * up[i] * (s + a * (1 - s));
    }
}

// Replaces scores by their softmax and returns their log-sum-exp.
static inline real softmax_inplace(n_t n, real *x) {
    real max = x[0], sum = 0;
#pragma omp simd reduction(max : max)
    for (n_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
#pragma omp simd reduction(+ : sum)
    for (n_t i = 0; i < n; i++) sum += x[i] = fast_exp(x[i] - max);
    real factor = 1 / sum;
#pragma omp simd
    for (n_t i = 0; i < n; i++) x[i] *= factor;
    return max + log(sum);
}

#endif
