// Attention over packed rows: forward pass.

#include "packed.h"

// Replaces scores a..b of one query by unnormalised probabilities, relative to the largest score
// so far; rescales `out` and `sum` accordingly.
static void online_softmax(n_t d, real *p, n_t a, n_t b, n_t n, real *max, real *sum, real *out) {
    real high = *max, added = 0;
    for (n_t x = a; x < b; x++) high = p[x] > high ? p[x] : high;
    memset(p, 0, a * sizeof(real)), memset(p + b, 0, (n - b) * sizeof(real));
    if (a == b) return;
#pragma omp simd reduction(+ : added)
    for (n_t x = a; x < b; x++) added += p[x] = fast_exp(p[x] - high);
    real keep = fast_exp(*max - high);
    for (n_t c = 0; c < d && keep < 1; c++) out[c] *= keep;
    *sum = *sum * keep + added, *max = high;
}

// Outputs and log-sum-exp of a block of queries, for one key head.
static void attend_block(const AttentionArgs *args, const Block *block, n_t head,
                         const KeyRange *keys, n_t count, const Workspace *w) {
    n_t d = args->d, group = args->H / args->K, rows = (block->to - block->from) * group, a, b;
    pack_heads(args, block->from, block->to, head, args->scale, args->q, args->sq, w->q);
    for (n_t r = 0; r < rows; r++) w->max[r] = -INFINITY, w->sum[r] = 0;
    memset(w->out, 0, rows * d * sizeof(real));
    for (n_t s = 0; s < count; s++) {
        const KeyRange *range = keys + s;
        n_t end = visible_keys_end(block, keys, s, count), n;
        for (n_t c = first_visible_key(args, block, range); c < end; c += n) {
            const real *k = range->k + c * range->ldk, *v = range->v + c * range->ldv;
            n = min_n(KEY_TILE, end - c);
            matmul(args, 'N', 'T', rows, n, d, 1, w->q, d, k, range->ldk, 0, w->p, n);
            for (n_t r = 0; r < rows; r++) {
                visible_range(args, range, s == count - 1, block->from + r / group, c, n, &a, &b);
                online_softmax(d, w->p + r * n, a, b, n, w->max + r, w->sum + r, w->out + r * d);
            }
            matmul(args, 'N', 'N', rows, d, n, 1, w->p, n, v, range->ldv, 1, w->out, d);
        }
    }
    for (n_t r = 0; r < rows; r++) {
        n_t i = block->from + r / group;
        args->lse[i * args->lse_stride + head * group + r % group] = w->max[r] + log(w->sum[r]);
        for (n_t c = 0; c < d; c++) w->out[r * d + c] /= w->sum[r];
    }
    unpack_heads(args, block->from, block->to, head, w->out, args->out, args->so);
}

void attention_forward(const AttentionArgs *args) {
    n_t group = args->H / args->K, rows = max_n(QUERY_TILE, group), step = rows / group, count = 0;
    n_t *parent = malloc((args->num_segments + 1) * sizeof(n_t));
    n_t max_ranges = find_parents(args, parent);
    Block *block = malloc((args->m + 1) * sizeof(Block));
    for (n_t s = 0; s < args->num_segments; s++)
        for (n_t i = args->segment[s].begin, end = args->segment[s].end; i < end; i += step)
            block[count++] = (Block){s, i, min_n(i + step, end)};
#pragma omp parallel num_threads(args->threads)
    {
        int before = args->set_threads ? args->set_threads(1) : 0;
        KeyRange *keys = malloc(max_ranges * sizeof(KeyRange));
        Workspace w = make_workspace(args, rows);
#pragma omp for schedule(dynamic)
        for (n_t i = 0; i < count * args->K; i++) {
            n_t s = block[i / args->K].segment, head = i % args->K;
            n_t ranges = collect_keys(args, parent, s, head, keys);
            attend_block(args, block + i / args->K, head, keys, ranges, &w);
        }
        free(w.q), free(keys);
        if (args->set_threads) args->set_threads(before);
    }
    free(block), free(parent);
}
