// Attention within a line.

#include "packed.h"

// Scores of some keys become parts of what is to be divided by `sum`, for the largest score so far.
static void weigh(n_t d, real *p, n_t a, n_t b, n_t n, real *top, real *sum, real *out) {
    real high = *top, more = 0;
    for (n_t x = a; x < b; x++) high = p[x] > high ? p[x] : high;
    memset(p, 0, a * sizeof(real)), memset(p + b, 0, (n - b) * sizeof(real));
    if (a == b) return;
#pragma omp simd reduction(+ : more)
    for (n_t x = a; x < b; x++) more += p[x] = expo(p[x] - high);
    real keep = expo(*top - high);
    for (n_t c = 0; c < d && keep < 1; c++) out[c] *= keep;
    *sum = *sum * keep + more, *top = high;
}

// A block of queries and one head of keys: what they see, and the logarithm of its normaliser.
static void see(const Line *l, const Block *block, n_t head, const Seen *seen, n_t count,
                const Work *w) {
    n_t d = l->d, each = l->H / l->K, rows = (block->to - block->from) * each, a, b;
    pack(l, block->from, block->to, head, l->scale, l->q, l->sq, w->q);
    for (n_t r = 0; r < rows; r++) w->top[r] = -INFINITY, w->sum[r] = 0;
    memset(w->out, 0, rows * d * sizeof(real));
    for (n_t s = 0; s < count; s++) {
        const Seen *at = seen + s;
        n_t end = farthest(block, seen, s, count), n;
        for (n_t c = nearest(l, block, at); c < end; c += n) {
            const real *k = at->k + c * at->ldk, *v = at->v + c * at->ldv;
            n = least(TILE, end - c);
            product(l, 'N', 'T', rows, n, d, 1, w->q, d, k, at->ldk, 0, w->p, n);
            for (n_t r = 0; r < rows; r++) {
                span(l, at, s == count - 1, block->from + r / each, c, n, &a, &b);
                weigh(d, w->p + r * n, a, b, n, w->top + r, w->sum + r, w->out + r * d);
            }
            product(l, 'N', 'N', rows, d, n, 1, w->p, n, v, at->ldv, 1, w->out, d);
        }
    }
    for (n_t r = 0; r < rows; r++) {
        real *total = l->total + (block->from + r / each) * l->st + head * each + r % each;
        *total = w->top[r] + log(w->sum[r]);
        for (n_t c = 0; c < d; c++) w->out[r * d + c] /= w->sum[r];
    }
    unpack(l, block->from, block->to, head, w->out, l->out, l->so);
}

void attend(const Line *l) {
    n_t rows = most(ROWS, l->H / l->K), step = rows / (l->H / l->K), count = 0;
    n_t *parent = malloc((l->stretches + 1) * sizeof(n_t)), depth = parents(l, parent);
    Block *block = malloc((l->m + 1) * sizeof(Block));
    for (n_t s = 0; s < l->stretches; s++)
        for (n_t i = l->stretch[s].begin, end = l->stretch[s].end; i < end; i += step)
            block[count++] = (Block){s, i, least(i + step, end)};
#pragma omp parallel num_threads(l->threads)
    {
        int before = l->alone ? l->alone(1) : 0;
        Seen *seen = malloc(depth * sizeof(Seen));
        Work w = work(l, rows);
#pragma omp for schedule(dynamic)
        for (n_t i = 0; i < count * l->K; i++) {
            n_t parts = gather(l, parent, block[i / l->K].stretch, i % l->K, seen);
            see(l, block + i / l->K, i % l->K, seen, parts, &w);
        }
        free(w.q), free(seen);
        if (l->alone) l->alone(before);
    }
    free(block), free(parent);
}
