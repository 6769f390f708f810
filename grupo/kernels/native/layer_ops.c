// The operations of a layer between its matrix products, for m tokens, forward and backward.
// Gradients of weights have one row for each thread, to which that thread adds.

#include "layer.h"

#define EACH_ROW \
    _Pragma("omp parallel for num_threads(s->threads) schedule(static)") for (n_t i = 0; i < m; i++)
#define EACH_THREAD \
    _Pragma("omp parallel for num_threads(s->threads) schedule(static)") \
    for (n_t t = 0; t < s->threads; t++) \
        for (n_t i = t * m / s->threads; i < (t + 1) * m / s->threads; i++)

void norm_rows(const ModelShape *s, n_t m, const real *x, n_t ld, const real *w, real *out) {
    EACH_ROW norm(s->h, x + i * ld, w, s->eps, out + i * s->h);
}

// Adds the gradients to `dx` (m, h) and `dw` (threads, h).
void norm_rows_backward(const ModelShape *s, n_t m, const real *x, n_t ld, const real *w,
                        const real *grad_out, real *dx, real *dw) {
    n_t h = s->h;
    EACH_THREAD norm_backward(h, x + i * ld, w, s->eps, grad_out + i * h, dx + i * h, dw + t * h);
}

// Rotary embedding of queries (m, H, d) and keys (m, K, d), normalised first if there are weights.
void rotate_rows(const ModelShape *s, const LayerPointers *l, n_t m, const real *activations,
                 const real *cos, const real *sin, real *q, real *k) {
    ActivationOffsets p = activation_offsets(s);
    n_t d = s->d;
    EACH_ROW {
        real x[d];
        const real *from = activations + i * p.width + p.qkv;
        for (n_t j = 0; j < s->H + s->K; j++, from += d) {
            n_t is_key = j >= s->H;
            const real *w = is_key ? l->kn : l->qn;
            if (w) norm(d, from, w, s->eps, x);
            real *to = is_key ? k + (i * s->K + j - s->H) * d : q + (i * s->H + j) * d;
            rope(d, w ? x : from, cos + i * d, sin + i * d, to);
        }
    }
}

// Gradients of the projections (m, H + 2K, d) from those of queries, keys and values; adds those of
// the weights of both norms to `dnorms` (threads, 2, d).
void rotate_rows_backward(const ModelShape *s, const LayerPointers *l, n_t m,
                          const real *activations, const real *cos, const real *sin,
                          const real *dq, const real *dk, const real *dv, real *out,
                          real *dnorms) {
    ActivationOffsets p = activation_offsets(s);
    n_t d = s->d, heads = s->H + 2 * s->K;
    EACH_THREAD {
        real x[d], *into = out + i * heads * d;
        const real *from = activations + i * p.width + p.qkv;
        for (n_t j = 0; j < s->H + s->K; j++, into += d, from += d) {
            n_t is_key = j >= s->H;
            const real *w = is_key ? l->kn : l->qn;
            const real *grad_out =
                is_key ? dk + (i * s->K + j - s->H) * d : dq + (i * s->H + j) * d;
            rope_backward(d, grad_out, cos + i * d, sin + i * d, w ? x : into);
            if (!w) continue;
            memset(into, 0, d * sizeof(real));
            norm_backward(d, from, w, s->eps, x, into, dnorms + (t * 2 + is_key) * d);
        }
        memcpy(into, dv + i * s->K * d, s->K * d * sizeof(real));
    }
}

// `gate` points at the gate projections in the activations; the up projections follow them.
void swiglu_rows(const ModelShape *s, n_t m, const real *gate, n_t ld, real *out) {
    n_t n = s->I;
    EACH_ROW swiglu(n, gate + i * ld, gate + i * ld + n, out + i * n);
}

// Gradients of gate and up projections, (m, 2 I).
void swiglu_rows_backward(const ModelShape *s, n_t m, const real *gate, n_t ld,
                          const real *grad_out, real *out) {
    n_t n = s->I;
    EACH_ROW {
        const real *g = gate + i * ld;
        swiglu_backward(n, g, g + n, grad_out + i * n, out + 2 * i * n, out + (2 * i + 1) * n);
    }
}
