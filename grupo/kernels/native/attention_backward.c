// Attention within a line, backwards: what a slope of its outputs says of what went in.

#include "packed.h"

// A block of queries and some keys: their slopes, added to what is there.
static void blame_some(const Line *l, const Block *block, n_t head, const Seen *seen, int own,
                       n_t c, n_t n, const Work *w) {
    n_t d = l->d, each = l->H / l->K, rows = (block->to - block->from) * each, a, b;
    n_t ld = l->K * d, at = (seen->line + c) * ld + head * d;
    const real *k = seen->k + c * seen->ldk, *v = seen->v + c * seen->ldv;
    product(l, 'N', 'T', rows, n, d, 1, w->q, d, k, seen->ldk, 0, w->p, n);
    product(l, 'N', 'T', rows, n, d, 1, w->slope, d, v, seen->ldv, 0, w->push, n);
    for (n_t r = 0; r < rows; r++) {
        real *p = w->p + r * n, *push = w->push + r * n, total = w->top[r], reach = w->sum[r];
        span(l, seen, own, block->from + r / each, c, n, &a, &b);
        memset(p, 0, a * sizeof(real)), memset(push, 0, a * sizeof(real));
        memset(p + b, 0, (n - b) * sizeof(real)), memset(push + b, 0, (n - b) * sizeof(real));
#pragma omp simd
        for (n_t x = a; x < b; x++) {
            p[x] = expo(p[x] - total);
            push[x] = p[x] * (push[x] - reach);
        }
    }
    product(l, 'T', 'N', n, d, rows, 1, w->p, n, w->slope, d, 1, l->dv + at, ld);
    product(l, 'T', 'N', n, d, rows, 1, w->push, n, w->q, d, 1, l->dk + at, ld);
    product(l, 'N', 'N', rows, d, n, l->scale, w->push, n, k, seen->ldk, 1, w->out, d);
}

static void blame(const Line *l, const Block *block, n_t head, const Seen *seen, n_t count,
                  const Work *w) {
    n_t d = l->d, each = l->H / l->K, rows = (block->to - block->from) * each;
    Stride side = {l->H * d, d};
    pack(l, block->from, block->to, head, 1, l->out, l->so, w->out);
    pack(l, block->from, block->to, head, 1, l->slope, side, w->slope);
    pack(l, block->from, block->to, head, l->scale, l->q, l->sq, w->q);
    for (n_t r = 0; r < rows; r++) {
        n_t i = block->from + r / each;
        w->top[r] = l->total[i * l->st + head * each + r % each];
        w->sum[r] = dot(d, w->out + r * d, w->slope + r * d);
    }
    memset(w->out, 0, rows * d * sizeof(real));
    for (n_t s = 0; s < count; s++) {
        n_t end = farthest(block, seen, s, count);
        for (n_t c = nearest(l, block, seen + s); c < end; c += TILE)
            blame_some(l, block, head, seen + s, s == count - 1, c, least(TILE, end - c), w);
    }
    unpack(l, block->from, block->to, head, w->out, l->dq, side);
}

// Whoever shares keys is worked out by one thread, one after another: sums are the same every time.
void attend_back(const Line *l) {
    n_t each = l->H / l->K, rows = most(ROWS, each), step = rows / each, roots = 0;
    n_t *parent = malloc((l->stretches + 1) * sizeof(n_t)), depth = parents(l, parent);
    n_t *root = malloc((l->stretches + 1) * sizeof(n_t));
    for (n_t s = 0; s < l->stretches; s++)
        if (parent[s] < 0) root[roots++] = s;
    root[roots] = l->stretches;
#pragma omp parallel num_threads(l->threads)
    {
        int before = l->alone ? l->alone(1) : 0;
        Seen *seen = malloc(depth * sizeof(Seen));
        Work w = work(l, rows);
#pragma omp for schedule(dynamic)
        for (n_t i = 0; i < roots * l->K; i++)
            for (n_t s = root[i / l->K]; s < root[i / l->K + 1]; s++) {
                n_t count = gather(l, parent, s, i % l->K, seen), end = l->stretch[s].end;
                for (n_t from = l->stretch[s].begin; from < end; from += step) {
                    Block block = {s, from, least(from + step, end)};
                    blame(l, &block, i % l->K, seen, count, &w);
                }
            }
        free(w.q), free(seen);
        if (l->alone) l->alone(before);
    }
    free(root), free(parent);
}
