// One more token in every row: all layers of it, each thread with rows of its own.
// Weights of projections are told as panels.

#include "gemm_panels.h"

typedef struct {
    n_t rows, cells, width; // there is room for `cells` that a row says, `width` of a trunk
    const n_t *said;        // (rows) tokens before this one
    const n_t *trunk;       // (rows) which trunk a row goes on from
    const n_t *length;      // (trunks)
    const real *cos, *sin;  // (rows, d)
    real *const *own_k, *const *own_v;     // of each layer (rows, K, cells, d)
    real *const *trunk_k, *const *trunk_v; // of each layer (trunks, K, width, d)
    real *const *record;                   // of each layer (rows, record)
} Step;

// What rows a..b, all of one trunk, see with the query heads of one key head.
static void look(const Shape *s, const Layer *l, const Step *t, n_t layer, n_t head, n_t a, n_t b,
                 real *q, real *scores, real *out) {
    Place p = place(s);
    n_t d = s->d, each = s->H / s->K, trunk = t->trunk[a], far = t->length[trunk];
    n_t wide = t->width + t->cells, start = (trunk * s->K + head) * t->width * d;
    const real *tk = t->trunk_k[layer] + start, *tv = t->trunk_v[layer] + start;
    int F = far, R = (b - a) * each, D = d, W = wide;
    real scale = l->scale, none = 0, one = 1;
    s->gemm("T", "N", &F, &R, &D, &scale, tk, &D, q, &D, &none, scores, &W);
    for (n_t row = a; row < b; row++) {
        const real *k = t->own_k[layer] + (row * s->K + head) * t->cells * d;
        n_t near = t->said[row] + 1, unseen = far + near - l->window;
        for (n_t j = 0; j < each; j++) {
            n_t i = (row - a) * each + j;
            real *x = scores + i * wide;
            for (n_t c = 0; c < near; c++) x[far + c] = scale * dot(d, q + i * d, k + c * d);
            for (n_t c = 0; c < unseen; c++) x[c] = -INFINITY;
            real total = soften(far + near, x);
            t->record[layer][row * p.width + p.total + head * each + j] = total;
        }
    }
    s->gemm("N", "N", &D, &R, &F, &one, tv, &D, scores, &W, &none, out, &D);
    for (n_t row = a; row < b; row++) {
        const real *v = t->own_v[layer] + (row * s->K + head) * t->cells * d;
        for (n_t j = 0; j < each; j++) {
            n_t i = (row - a) * each + j;
            for (n_t c = 0; c <= t->said[row]; c++)
                add(d, scores[i * wide + far + c], v + c * d, out + i * d);
            memcpy(t->record[layer] + row * p.width + p.seen + (head * each + j) * d, out + i * d,
                   d * sizeof(real));
        }
    }
}

// Keys and values of this token are noted; queries (K, rows, H/K, d) are turned.
static void note(const Shape *s, const Layer *l, const Step *t, n_t layer, n_t a, n_t b, real *q) {
    Place p = place(s);
    n_t d = s->d, each = s->H / s->K;
    real x[d];
    for (n_t row = a; row < b; row++) {
        const real *qkv = t->record[layer] + row * p.width + p.qkv;
        const real *cos = t->cos + row * d, *sin = t->sin + row * d;
        for (n_t i = 0; i < s->H; i++) {
            const real *from = qkv + i * d;
            if (l->qn) norm(d, from, l->qn, s->eps, x), from = x;
            rope(d, from, cos, sin, q + ((i / each * (b - a) + row - a) * each + i % each) * d);
        }
        for (n_t i = 0; i < s->K; i++) {
            n_t at = ((row * s->K + i) * t->cells + t->said[row]) * d;
            const real *from = qkv + (s->H + i) * d;
            if (l->kn) norm(d, from, l->kn, s->eps, x), from = x;
            rope(d, from, cos, sin, t->own_k[layer] + at);
            memcpy(t->own_v[layer] + at, qkv + (s->H + s->K + i) * d, d * sizeof(real));
        }
    }
}

// A layer, for rows a..b: their records; what comes out stands in `x` (rows, h).
static void pass(const Shape *s, const Layer *l, const Step *t, n_t layer, n_t a, n_t b, real *x,
                 real *work) {
    Place p = place(s);
    n_t m = b - a, h = s->h, d = s->d, w = p.width, each = s->H / s->K;
    real *at = t->record[layer] + a * w, *normed = work, *act = normed + m * h;
    real *q = act + m * s->I, *out = q + m * s->H * d, *scores = out + m * each * d;
    for (n_t i = 0; i < m; i++) {
        memcpy(at + i * w, x + (a + i) * h, h * sizeof(real));
        norm(h, at + i * w, l->norm, s->eps, normed + i * h);
    }
    linear(m, s->H * d, h, normed, h, l->q, l->qb, at + p.qkv, w);
    linear(m, s->K * d, h, normed, h, l->k, l->kb, at + p.qkv + s->H * d, w);
    linear(m, s->K * d, h, normed, h, l->v, l->vb, at + p.qkv + (s->H + s->K) * d, w);
    note(s, l, t, layer, a, b, q);
    for (n_t row = a, next; row < b; row = next) {
        for (next = row + 1; next < b && t->trunk[next] == t->trunk[row];) next++;
        for (n_t head = 0; head < s->K; head++)
            look(s, l, t, layer, head, row, next, q + (head * m + row - a) * each * d, scores, out);
    }
    linear(m, h, s->H * d, at + p.seen, w, l->o, NULL, at + p.y, w);
    for (n_t i = 0; i < m; i++) {
        add(h, 1, at + i * w, at + i * w + p.y);
        norm(h, at + i * w + p.y, l->norm2, s->eps, normed + i * h);
    }
    linear(m, s->I, h, normed, h, l->gate, NULL, at + p.gate, w);
    linear(m, s->I, h, normed, h, l->up, NULL, at + p.gate + s->I, w);
    for (n_t i = 0; i < m; i++)
        swiglu(s->I, at + i * w + p.gate, at + i * w + p.gate + s->I, act + i * s->I);
    linear(m, h, s->I, act, s->I, l->down, NULL, x + a * h, h);
    for (n_t i = 0; i < m; i++) add(h, 1, at + i * w + p.y, x + (a + i) * h);
}

// All layers: `x` (rows, h) are embeddings, then what the last layer says. Each thread has rows of
// its own, and waits for nobody.
int decode(const Shape *s, const Layer *layers, const Step *t, real *x) {
    n_t threads = s->threads < t->rows ? s->threads : t->rows, each = s->H / s->K;
    n_t most = (t->rows + threads - 1) / threads, wide = t->width + t->cells;
    n_t size = most * (s->h + s->I + s->H * s->d + each * (s->d + wide));
    real *work = malloc(threads * size * sizeof(real));
    if (!work) return 1;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (n_t i = 0; i < threads; i++) {
        n_t a = i * t->rows / threads, b = (i + 1) * t->rows / threads;
        int before = s->alone ? s->alone(1) : 0;
        for (n_t layer = 0; layer < s->layers; layer++)
            pass(s, layers + layer, t, layer, a, b, x, work + i * size);
        if (s->alone) s->alone(before);
    }
    free(work);
    return 0;
}

// out (m, n) = x (m, k) w^T, of whose w these are the panels: each thread has some of them.
void product(const Shape *s, n_t m, n_t n, n_t k, const real *x, const real *panels, real *out) {
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (n_t j = 0; j < n; j += PANEL)
        linear(m, n - j < PANEL ? n - j : PANEL, k, x, k, panels + j * k, NULL, out + j, n);
}

// `w` (n, k) as panels, of which `out` has room for all.
void panels(const Shape *s, n_t n, n_t k, const real *w, real *out) {
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (n_t j = 0; j < n; j += PANEL)
        for (n_t c = 0; c < PANEL; c++)
            for (n_t i = 0; i < k; i++)
                out[(j * k) + i * PANEL + c] = j + c < n ? w[(j + c) * k + i] : 0;
}
