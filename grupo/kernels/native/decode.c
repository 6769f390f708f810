// One decode step: one more token in every row, through all layers. Each thread processes its own
// rows. The weights of projections are in panels.

#include "bfloat16.h"
#include "gemm_panels.h"

typedef struct {
    n_t rows, capacity, width;  // suffix tokens a row has room for, length of the longest prefix
    n_t rounded;                // whether panels are in bfloat16, and products of rounded numbers
    const n_t *num_generated;   // (rows) tokens before this one
    const n_t *prefix_index;    // (rows) the prefix that a row continues
    const n_t *prefix_length;   // (prefixes)
    const real *cos, *sin;      // (rows, d)
    real *const *suffix_k, *const *suffix_v; // of each layer (rows, K, capacity, d)
    real *const *prefix_k, *const *prefix_v; // of each layer (prefixes, K, width, d)
    real *const *activations;                // of each layer (rows, ActivationOffsets.width)
} DecodeStepArgs;

// Attention of rows a..b, which continue the same prefix, for the query heads of one key head.
static void attend_rows(const ModelShape *s, const LayerPointers *l, const DecodeStepArgs *step,
                        n_t layer, n_t head, n_t a, n_t b, real *q, real *scores, real *out) {
    ActivationOffsets p = activation_offsets(s);
    n_t d = s->d, group = s->H / s->K, prefix = step->prefix_index[a];
    n_t far = step->prefix_length[prefix];
    n_t wide = step->width + step->capacity, start = (prefix * s->K + head) * step->width * d;
    const real *prefix_k = step->prefix_k[layer] + start, *prefix_v = step->prefix_v[layer] + start;
    int F = far, R = (b - a) * group, D = d, W = wide;
    real scale = l->scale, zero = 0, one = 1;
    s->gemm("T", "N", &F, &R, &D, &scale, prefix_k, &D, q, &D, &zero, scores, &W);
    for (n_t row = a; row < b; row++) {
        const real *k = step->suffix_k[layer] + (row * s->K + head) * step->capacity * d;
        n_t near = step->num_generated[row] + 1, masked = far + near - l->window;
        for (n_t j = 0; j < group; j++) {
            n_t i = (row - a) * group + j;
            real *x = scores + i * wide;
            for (n_t c = 0; c < near; c++) x[far + c] = scale * dot(d, q + i * d, k + c * d);
            for (n_t c = 0; c < masked; c++) x[c] = -INFINITY;
            real lse = softmax_inplace(far + near, x);
            step->activations[layer][row * p.width + p.lse + head * group + j] = lse;
        }
    }
    s->gemm("N", "N", &D, &R, &F, &one, prefix_v, &D, scores, &W, &zero, out, &D);
    for (n_t row = a; row < b; row++) {
        const real *v = step->suffix_v[layer] + (row * s->K + head) * step->capacity * d;
        for (n_t j = 0; j < group; j++) {
            n_t i = (row - a) * group + j;
            for (n_t c = 0; c <= step->num_generated[row]; c++)
                axpy(d, scores[i * wide + far + c], v + c * d, out + i * d);
            real *attn_out = step->activations[layer] + row * p.width + p.attn_out;
            memcpy(attn_out + (head * group + j) * d, out + i * d, d * sizeof(real));
        }
    }
}

// Appends keys and values of the new tokens of rows a..b; writes rotated queries (K, rows, H/K, d).
static void append_kv(const ModelShape *s, const LayerPointers *l, const DecodeStepArgs *step,
                      n_t layer, n_t a, n_t b, real *q) {
    ActivationOffsets p = activation_offsets(s);
    n_t d = s->d, group = s->H / s->K;
    real x[d];
    for (n_t row = a; row < b; row++) {
        const real *qkv = step->activations[layer] + row * p.width + p.qkv;
        const real *cos = step->cos + row * d, *sin = step->sin + row * d;
        for (n_t i = 0; i < s->H; i++) {
            const real *from = qkv + i * d;
            if (l->qn) norm(d, from, l->qn, s->eps, x), from = x;
            n_t at = ((i / group * (b - a) + row - a) * group + i % group) * d;
            rope(d, from, cos, sin, q + at);
        }
        for (n_t i = 0; i < s->K; i++) {
            n_t at = ((row * s->K + i) * step->capacity + step->num_generated[row]) * d;
            const real *from = qkv + (s->H + i) * d;
            if (l->kn) norm(d, from, l->kn, s->eps, x), from = x;
            rope(d, from, cos, sin, step->suffix_k[layer] + at);
            memcpy(step->suffix_v[layer] + at, qkv + (s->H + s->K + i) * d, d * sizeof(real));
        }
    }
}

// `linear` or `linear_bf16`; `rounded` is a buffer for x, or NULL for the first.
static void project(n_t m, n_t n, n_t k, const real *x, n_t ldx, const real *panels, const real *b,
                    real *out, n_t ldo, bf16 *rounded) {
    if (!rounded) {
        linear(m, n, k, x, ldx, panels, b, out, ldo);
        return;
    }
    round_rows(m, k, x, ldx, rounded);
    linear_bf16(m, n, k, rounded, (const bf16 *)panels, (const void *)b, (void *)out, ldo);
}

// One layer for rows a..b: reads `x` (rows, h), fills in the activations, overwrites `x` with the
// output.
static void layer_forward(const ModelShape *s, const LayerPointers *l, const DecodeStepArgs *step,
                          n_t layer, n_t a, n_t b, real *x, real *work) {
    ActivationOffsets p = activation_offsets(s);
    n_t m = b - a, h = s->h, d = s->d, w = p.width, group = s->H / s->K;
    real *at = step->activations[layer] + a * w, *normed = work, *act = normed + m * h;
    real *q = act + m * s->I, *out = q + m * s->H * d, *scores = out + m * group * d;
    bf16 *rounded = step->rounded ? (bf16 *)(scores + m * group * (step->width + step->capacity)) : 0;
    for (n_t i = 0; i < m; i++) {
        memcpy(at + i * w, x + (a + i) * h, h * sizeof(real));
        norm(h, at + i * w, l->norm, s->eps, normed + i * h);
    }
    project(m, s->H * d, h, normed, h, l->q, l->qb, at + p.qkv, w, rounded);
    project(m, s->K * d, h, normed, h, l->k, l->kb, at + p.qkv + s->H * d, w, rounded);
    project(m, s->K * d, h, normed, h, l->v, l->vb, at + p.qkv + (s->H + s->K) * d, w, rounded);
    append_kv(s, l, step, layer, a, b, q);
    for (n_t row = a, next; row < b; row = next) {
        for (next = row + 1; next < b && step->prefix_index[next] == step->prefix_index[row];)
            next++;
        for (n_t head = 0; head < s->K; head++) {
            real *q_rows = q + (head * m + row - a) * group * d;
            attend_rows(s, l, step, layer, head, row, next, q_rows, scores, out);
        }
    }
    project(m, h, s->H * d, at + p.attn_out, w, l->o, NULL, at + p.residual, w, rounded);
    for (n_t i = 0; i < m; i++) {
        axpy(h, 1, at + i * w, at + i * w + p.residual);
        norm(h, at + i * w + p.residual, l->norm2, s->eps, normed + i * h);
    }
    project(m, s->I, h, normed, h, l->gate, NULL, at + p.gate, w, rounded);
    project(m, s->I, h, normed, h, l->up, NULL, at + p.gate + s->I, w, rounded);
    for (n_t i = 0; i < m; i++)
        swiglu(s->I, at + i * w + p.gate, at + i * w + p.gate + s->I, act + i * s->I);
    project(m, h, s->I, act, s->I, l->down, NULL, x + a * h, h, rounded);
    for (n_t i = 0; i < m; i++) axpy(h, 1, at + i * w + p.residual, x + (a + i) * h);
}

// All layers: `x` (rows, h) holds embeddings and is overwritten with the output of the last layer.
// Each thread processes its own rows without synchronisation. Returns 1 when memory runs out.
int decode(const ModelShape *s, const LayerPointers *layers, const DecodeStepArgs *step, real *x) {
    n_t threads = s->threads < step->rows ? s->threads : step->rows, group = s->H / s->K;
    n_t max_rows = (step->rows + threads - 1) / threads, wide = step->width + step->capacity;
    n_t widest = s->I > s->H * s->d ? s->I : s->H * s->d;
    widest = (widest > s->h ? widest : s->h) + 1; // an operand in bfloat16 takes half of this
    n_t size = max_rows * (s->h + s->I + s->H * s->d + group * (s->d + wide));
    size += step->rounded ? max_rows * (widest / 2 + 1) : 0;
    real *work = malloc(threads * size * sizeof(real));
    if (!work) return 1;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (n_t i = 0; i < threads; i++) {
        n_t a = i * step->rows / threads, b = (i + 1) * step->rows / threads;
        int before = s->set_threads ? s->set_threads(1) : 0;
        for (n_t layer = 0; layer < s->layers; layer++)
            layer_forward(s, layers + layer, step, layer, a, b, x, work + i * size);
        if (s->set_threads) s->set_threads(before);
    }
    free(work);
    return 0;
}

// out (m, n) = x (m, k) w^T for w in panels; each thread computes some of the panels.
int matmul_panels(const ModelShape *s, n_t m, n_t n, n_t k, const real *x, const real *panels,
                  real *out) {
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (n_t j = 0; j < n; j += PANEL)
        linear(m, n - j < PANEL ? n - j : PANEL, k, x, k, panels + j * k, NULL, out + j, n);
    return 0;
}

// Whether this library multiplies in bfloat16.
int has_bfloat16(const ModelShape *s) { return BF_PANEL > 0; }

// As `matmul_panels`, of numbers rounded to bfloat16. Returns 1 when memory runs out.
int matmul_panels_bf16(const ModelShape *s, n_t m, n_t n, n_t k, const real *x, const bf16 *panels,
                       real *out) {
    n_t pairs = (k + 1) / 2, step = BF_PANEL ? BF_PANEL : n;
    bf16 *rounded = malloc(m * pairs * 2 * sizeof(bf16));
    if (!rounded) return 1;
    round_rows(m, k, x, k, rounded);
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (n_t j = 0; j < n; j += step)
        linear_bf16(m, n - j < step ? n - j : step, k, rounded, panels + 2 * j * pairs, NULL,
                    (void *)(out + j), n);
    free(rounded);
    return 0;
}

// Packs `w` (n, k) into panels of bfloat16; `out` has room for n rounded up to a multiple of
// BF_PANEL, times k rounded up to an even number.
void panels_bf16(const ModelShape *s, n_t n, n_t k, const real *w, bf16 *out) {
    n_t pairs = (k + 1) / 2, step = BF_PANEL ? BF_PANEL : n;
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (n_t j = 0; j < n; j += step)
        for (n_t i = 0; i < pairs; i++)
            for (n_t c = 0; c < step; c++)
                for (n_t e = 0; e < 2; e++) {
                    int is_real = j + c < n && 2 * i + e < k;
                    real value = is_real ? w[(j + c) * k + 2 * i + e] : 0;
                    out[((j * pairs) + i * step + c) * 2 + e] = round_bf16(value);
                }
}

// Packs `w` (n, k) into panels; `out` has room for n rounded up to a multiple of PANEL.
void panels(const ModelShape *s, n_t n, n_t k, const real *w, real *out) {
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (n_t j = 0; j < n; j += PANEL)
        for (n_t c = 0; c < PANEL; c++)
            for (n_t i = 0; i < k; i++)
                out[(j * k) + i * PANEL + c] = j + c < n ? w[(j + c) * k + i] : 0;
}
