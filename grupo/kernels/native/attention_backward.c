// Attention over packed rows: backward pass.

#include "packed.h"

// Adds the gradients of a block of queries and the keys c..c + n of one range to w->out (of the
// queries), dk and dv. w->max: log-sum-exp of each query; w->sum: its sum of out * grad_out.
static void attend_tile_backward(const AttentionArgs *args, const Block *block, n_t head,
                                 const KeyRange *keys, int is_self, n_t c, n_t n,
                                 const Workspace *w) {
    n_t d = args->d, group = args->H / args->K, rows = (block->to - block->from) * group, a, b;
    n_t ld = args->K * d, at = (keys->start + c) * ld + head * d;
    const real *k = keys->k + c * keys->ldk, *v = keys->v + c * keys->ldv;
    matmul(args, 'N', 'T', rows, n, d, 1, w->q, d, k, keys->ldk, 0, w->p, n);
    matmul(args, 'N', 'T', rows, n, d, 1, w->grad_out, d, v, keys->ldv, 0, w->grad_scores, n);
    for (n_t r = 0; r < rows; r++) {
        real *p = w->p + r * n, *grad = w->grad_scores + r * n, lse = w->max[r], delta = w->sum[r];
        visible_range(args, keys, is_self, block->from + r / group, c, n, &a, &b);
        memset(p, 0, a * sizeof(real)), memset(grad, 0, a * sizeof(real));
        memset(p + b, 0, (n - b) * sizeof(real)), memset(grad + b, 0, (n - b) * sizeof(real));
#pragma omp simd
        for (n_t x = a; x < b; x++) {
            p[x] = fast_exp(p[x] - lse);
            grad[x] = p[x] * (grad[x] - delta);
        }
    }
    matmul(args, 'T', 'N', n, d, rows, 1, w->p, n, w->grad_out, d, 1, args->dv + at, ld);
    matmul(args, 'T', 'N', n, d, rows, 1, w->grad_scores, n, w->q, d, 1, args->dk + at, ld);
    matmul(args, 'N', 'N', rows, d, n, args->scale, w->grad_scores, n, k, keys->ldk, 1, w->out, d);
}

static void attend_block_backward(const AttentionArgs *args, const Block *block, n_t head,
                                  const KeyRange *keys, n_t count, const Workspace *w) {
    n_t d = args->d, group = args->H / args->K, rows = (block->to - block->from) * group;
    Stride dense = {args->H * d, d};
    pack_heads(args, block->from, block->to, head, 1, args->out, args->so, w->out);
    pack_heads(args, block->from, block->to, head, 1, args->grad_out, dense, w->grad_out);
    pack_heads(args, block->from, block->to, head, args->scale, args->q, args->sq, w->q);
    for (n_t r = 0; r < rows; r++) {
        n_t i = block->from + r / group;
        w->max[r] = args->lse[i * args->lse_stride + head * group + r % group];
        w->sum[r] = dot(d, w->out + r * d, w->grad_out + r * d);
    }
    memset(w->out, 0, rows * d * sizeof(real));
    for (n_t s = 0; s < count; s++) {
        n_t end = visible_keys_end(block, keys, s, count);
        for (n_t c = first_visible_key(args, block, keys + s); c < end; c += KEY_TILE)
            attend_tile_backward(args, block, head, keys + s, s == count - 1, c,
                                 min_n(KEY_TILE, end - c), w);
    }
    unpack_heads(args, block->from, block->to, head, w->out, args->dq, dense);
}

// One thread processes all segments of a tree for one key head, in order: the sums into the
// gradients of shared keys have the same rounding in every run.
void attention_backward(const AttentionArgs *args) {
    n_t group = args->H / args->K, rows = max_n(QUERY_TILE, group), step = rows / group, roots = 0;
    n_t *parent = malloc((args->num_segments + 1) * sizeof(n_t));
    n_t max_ranges = find_parents(args, parent);
    n_t *root = malloc((args->num_segments + 1) * sizeof(n_t));
    for (n_t s = 0; s < args->num_segments; s++)
        if (parent[s] < 0) root[roots++] = s;
    root[roots] = args->num_segments;
#pragma omp parallel num_threads(args->threads)
    {
        int before = args->set_threads ? args->set_threads(1) : 0;
        KeyRange *keys = malloc(max_ranges * sizeof(KeyRange));
        Workspace w = make_workspace(args, rows);
#pragma omp for schedule(dynamic)
        for (n_t i = 0; i < roots * args->K; i++)
            for (n_t s = root[i / args->K]; s < root[i / args->K + 1]; s++) {
                n_t count = collect_keys(args, parent, s, i % args->K, keys);
                n_t end = args->segment[s].end;
                for (n_t from = args->segment[s].begin; from < end; from += step) {
                    Block block = {s, from, min_n(from + step, end)};
                    attend_block_backward(args, &block, i % args->K, keys, count, &w);
                }
            }
        free(w.q), free(keys);
        if (args->set_threads) args->set_threads(before);
    }
    free(root), free(parent);
}
