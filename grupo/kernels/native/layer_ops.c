// Lines of m tokens: what stands between the matrix products of a layer, and back.
// Slopes of weights have a row for each thread, to which more is added.

#include "layer.h"

#define EACH_ROW \
    _Pragma("omp parallel for num_threads(s->threads) schedule(static)") for (n_t i = 0; i < m; i++)
#define EACH_THREAD \
    _Pragma("omp parallel for num_threads(s->threads) schedule(static)") \
    for (n_t t = 0; t < s->threads; t++) \
        for (n_t i = t * m / s->threads; i < (t + 1) * m / s->threads; i++)

void norms(const Shape *s, n_t m, const real *x, n_t ld, const real *w, real *out) {
    EACH_ROW norm(s->h, x + i * ld, w, s->eps, out + i * s->h);
}

// `dx` (m, h) has more added to it, as `dw` has.
void norms_back(const Shape *s, n_t m, const real *x, n_t ld, const real *w, const real *slope,
                real *dx, real *dw) {
    n_t h = s->h;
    EACH_THREAD norm_back(h, x + i * ld, w, s->eps, slope + i * h, dx + i * h, dw + t * h);
}

// Queries (m, H, d) and keys (m, K, d) of records, normed where there are weights for it, turned.
void turns(const Shape *s, const Layer *l, n_t m, const real *record, const real *cos,
           const real *sin, real *q, real *k) {
    Place p = place(s);
    n_t d = s->d;
    EACH_ROW {
        real x[d];
        const real *from = record + i * p.width + p.qkv;
        for (n_t j = 0; j < s->H + s->K; j++, from += d) {
            n_t key = j >= s->H;
            const real *w = key ? l->kn : l->qn;
            if (w) norm(d, from, w, s->eps, x);
            real *to = key ? k + (i * s->K + j - s->H) * d : q + (i * s->H + j) * d;
            rope(d, w ? x : from, cos + i * d, sin + i * d, to);
        }
    }
}

// Slopes of what was projected, (m, H + 2K, d), from those of queries, keys and values; `dn` of the
// weights of both norms (threads, 2, d).
void turns_back(const Shape *s, const Layer *l, n_t m, const real *record, const real *cos,
                const real *sin, const real *dq, const real *dk, const real *dv, real *out,
                real *dn) {
    Place p = place(s);
    n_t d = s->d, each = s->H + 2 * s->K;
    EACH_THREAD {
        real x[d], *into = out + i * each * d;
        const real *from = record + i * p.width + p.qkv;
        for (n_t j = 0; j < s->H + s->K; j++, into += d, from += d) {
            n_t key = j >= s->H;
            const real *w = key ? l->kn : l->qn;
            const real *slope = key ? dk + (i * s->K + j - s->H) * d : dq + (i * s->H + j) * d;
            rope_back(d, slope, cos + i * d, sin + i * d, w ? x : into);
            if (!w) continue;
            memset(into, 0, d * sizeof(real));
            norm_back(d, from, w, s->eps, x, into, dn + (t * 2 + key) * d);
        }
        memcpy(into, dv + i * s->K * d, s->K * d * sizeof(real));
    }
}

// `gate` and, beside it, what it lets through, are in records.
void swiglus(const Shape *s, n_t m, const real *gate, n_t ld, real *out) {
    n_t n = s->I;
    EACH_ROW swiglu(n, gate + i * ld, gate + i * ld + n, out + i * n);
}

void swiglus_back(const Shape *s, n_t m, const real *gate, n_t ld, const real *slope, real *out) {
    n_t n = s->I;
    EACH_ROW {
        const real *g = gate + i * ld;
        swiglu_back(n, g, g + n, slope + i * n, out + 2 * i * n, out + (2 * i + 1) * n);
    }
}
