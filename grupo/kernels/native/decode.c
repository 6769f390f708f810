// One decode step: one more token in every row, through all layers. The weights of projections are
// in panels. Threads divide the columns of a product, so that every weight is read once for all
// rows, and divide the rows of the operations between products.

#include "spin_barrier.h"
#include "bfloat16.h"
#include "gemm_panels.h"

#include <sys/mman.h>

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

// One of the threads of a step.
typedef struct {
    n_t thread, threads;         // its number, and the number of threads
    n_t rows, from, to;          // all rows, and those that it processes between products
    real *normed, *act;          // (rows, h) and (rows, I), of all threads
    real *work;                  // its own memory
    bf16 *rounded;               // of all threads: `input` in bfloat16; NULL: it is not rounded
    const real *input;           // (rows, k) of the next products
    n_t ld, k;
    Barrier *barrier;            // of all threads
} Worker;

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

// The first column of a thread's share of n columns, a multiple of `step`.
static n_t first_column(n_t thread, n_t threads, n_t n, n_t step) {
    n_t panels = (n + step - 1) / step, column = thread * panels / threads * step;
    return column < n ? column : n;
}

// Waits until the input (rows, k) of the next products is complete, of which this thread has
// computed its own rows.
static void share_input(Worker *w, const real *input, n_t ld, n_t k) {
    w->input = input, w->ld = ld, w->k = k;
    n_t width = k + (k & 1), rows = w->to - w->from;
    if (w->rounded)
        round_rows(rows, k, input + w->from * ld, ld, w->rounded + w->from * width);
    wait_for_all(w->barrier, w->threads);
}

// This thread's columns a..b of out (rows, n) = input w^T + bias; `bias` may be NULL.
static void project(const Worker *w, n_t n, const real *panels, const real *bias, real *out,
                    n_t ldo, n_t *a, n_t *b) {
    n_t step = w->rounded ? BF_PANEL : PANEL, pairs = (w->k + 1) / 2;
    *a = first_column(w->thread, w->threads, n, step);
    *b = first_column(w->thread + 1, w->threads, n, step);
    const real *some = bias ? bias + *a : NULL;
    if (w->rounded)
        linear_bf16(w->rows, *b - *a, w->k, w->rounded, (const bf16 *)panels + 2 * *a * pairs,
                    (const void *)some, (void *)(out + *a), ldo);
    else linear(w->rows, *b - *a, w->k, w->input, w->ld, panels + *a * w->k, some, out + *a, ldo);
}

// This thread's columns of out (rows, n) = added + input w^T, then waits for those of the others.
static void project_added(const Worker *w, n_t n, const real *panels, const real *added, n_t lda,
                          real *out, n_t ldo) {
    n_t a, b;
    project(w, n, panels, NULL, out, ldo, &a, &b);
    for (n_t i = 0; i < w->rows; i++) axpy(b - a, 1, added + i * lda + a, out + i * ldo + a);
    wait_for_all(w->barrier, w->threads);
}

// Queries, keys and values of all rows, then attention of this thread's rows.
static void attend(Worker *w, const ModelShape *s, const LayerPointers *l,
                   const DecodeStepArgs *step, n_t layer) {
    ActivationOffsets p = activation_offsets(s);
    n_t d = s->d, group = s->H / s->K, m = w->to - w->from, a, b;
    real *qkv = step->activations[layer] + p.qkv;
    real *q = w->work, *out = q + m * s->H * d, *scores = out + m * group * d;
    project(w, s->H * d, l->q, l->qb, qkv, p.width, &a, &b);
    project(w, s->K * d, l->k, l->kb, qkv + s->H * d, p.width, &a, &b);
    project(w, s->K * d, l->v, l->vb, qkv + (s->H + s->K) * d, p.width, &a, &b);
    wait_for_all(w->barrier, w->threads);
    append_kv(s, l, step, layer, w->from, w->to, q);
    for (n_t row = w->from, next; row < w->to; row = next) {
        for (next = row + 1; next < w->to && step->prefix_index[next] == step->prefix_index[row];)
            next++;
        for (n_t head = 0; head < s->K; head++) {
            real *q_rows = q + (head * m + row - w->from) * group * d;
            attend_rows(s, l, step, layer, head, row, next, q_rows, scores, out);
        }
    }
}

// This thread's columns of the MLP's inner activations for all rows, then waits for the others.
static void activate(const Worker *w, const ModelShape *s, const LayerPointers *l, real *gate,
                     n_t ld) {
    n_t a, b;
    project(w, s->I, l->gate, NULL, gate, ld, &a, &b);
    project(w, s->I, l->up, NULL, gate + s->I, ld, &a, &b);
    for (n_t i = 0; i < w->rows; i++)
        swiglu(b - a, gate + i * ld + a, gate + i * ld + s->I + a, w->act + i * s->I + a);
    wait_for_all(w->barrier, w->threads);
}

// One layer: reads `x` (rows, h), fills in the activations, overwrites `x` with the output.
static void layer_forward(Worker *w, const ModelShape *s, const LayerPointers *l,
                          const DecodeStepArgs *step, n_t layer, real *x) {
    ActivationOffsets p = activation_offsets(s);
    n_t h = s->h, ld = p.width;
    real *at = step->activations[layer], *residual = at + p.residual;
    for (n_t i = w->from; i < w->to; i++) {
        memcpy(at + i * ld, x + i * h, h * sizeof(real));
        norm(h, x + i * h, l->norm, s->eps, w->normed + i * h);
    }
    share_input(w, w->normed, h, h);
    attend(w, s, l, step, layer);
    share_input(w, at + p.attn_out, ld, s->H * s->d);
    project_added(w, h, l->o, x, h, residual, ld);
    for (n_t i = w->from; i < w->to; i++)
        norm(h, residual + i * ld, l->norm2, s->eps, w->normed + i * h);
    share_input(w, w->normed, h, h);
    activate(w, s, l, at + p.gate, ld);
    share_input(w, w->act, s->I, s->I);
    project_added(w, h, l->down, residual, ld, x, h);
}

static n_t larger(n_t a, n_t b) { return a > b ? a : b; }

// All layers: `x` (rows, h) holds embeddings and is overwritten with the output of the last layer.
// Returns 1 when memory runs out.
int decode(const ModelShape *s, const LayerPointers *layers, const DecodeStepArgs *step, real *x) {
    n_t rows = step->rows, group = s->H / s->K;
    n_t work_size = s->H * s->d + group * (s->d + step->width + step->capacity); // for a row
    n_t widest = larger(s->I, larger(s->h, s->H * s->d)) + 1;
    real *normed = malloc(rows * (s->h + s->I + work_size) * sizeof(real));
    bf16 *rounded = step->rounded ? malloc(rows * widest * sizeof(bf16)) : NULL;
    int failed = !normed || (step->rounded && !rounded);
    Barrier barrier = {0};
#pragma omp parallel num_threads(failed ? 1 : s->threads)
    if (!failed) {
        n_t t = omp_get_thread_num(), count = omp_get_num_threads();
        n_t from = t * rows / count, to = (t + 1) * rows / count;
        real *act = normed + rows * s->h, *work = act + rows * s->I + from * work_size;
        Worker w = {t, count, rows, from, to, normed, act, work, rounded, .barrier = &barrier};
        int before = s->set_threads ? s->set_threads(1) : 0;
        for (n_t layer = 0; layer < s->layers; layer++)
            layer_forward(&w, s, layers + layer, step, layer, x);
        if (s->set_threads) s->set_threads(before);
    }
    free(normed), free(rounded);
    return failed;
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
#pragma omp parallel num_threads(s->threads)
    {
        n_t t = omp_get_thread_num(), threads = omp_get_num_threads();
        n_t a = first_column(t, threads, n, step), b = first_column(t + 1, threads, n, step);
        linear_bf16(m, b - a, k, rounded, panels + 2 * a * pairs, NULL, (void *)(out + a), n);
    }
    free(rounded);
    return 0;
}

// Packs `w` (n, k) into panels of bfloat16; `out` has room for n rounded up to a multiple of
// BF_PANEL, times k rounded up to an even number.
void panels_bf16(const ModelShape *s, n_t n, n_t k, const real *w, bf16 *out) {
    enum { BLOCK = 64 }; // pairs of all rows of a panel, which stay in the first-level cache
    n_t pairs = (k + 1) / 2, step = BF_PANEL ? BF_PANEL : n;
#pragma omp parallel for num_threads(s->threads) schedule(static)
    for (n_t j = 0; j < n; j += step)
        for (n_t first = 0; first < pairs; first += BLOCK)
            for (n_t c = 0; c < step; c++) {
                n_t count = pairs - first < BLOCK ? pairs - first : BLOCK;
                n_t columns = k - 2 * first < 2 * BLOCK ? k - 2 * first : 2 * BLOCK;
                bf16 *column = out + ((j * pairs) + first * step + c) * 2, row[2 * BLOCK] = {0};
                if (j + c < n) round_rows(1, columns, w + (j + c) * k + 2 * first, k, row);
                for (n_t i = 0; i < count; i++)
                    memcpy(column + i * step * 2, row + 2 * i, 2 * sizeof(*row));
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

// Asks the operating system for large pages below a buffer that nobody has written yet: decoding
// reads panels at the rate of the memory, and finding small pages slows it.
void use_large_pages(const ModelShape *s, n_t bytes, char *start) {
#ifdef MADV_HUGEPAGE
    uintptr_t page = 4096, first = ((uintptr_t)start + page - 1) / page * page;
    if (bytes > (4 << 20))
        madvise((void *)first, ((uintptr_t)start + bytes - first) / page * page, MADV_HUGEPAGE);
#endif
}
