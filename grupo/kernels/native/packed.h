// Attention over packed rows: a segment of tokens that several rows share is stored once.
//
// A token attends to its own segment up to itself, to all ancestors of that segment, and to the
// cached prefix before them, within the sliding window. A block of queries of one segment visits
// these key ranges one after the other, its own segment last. The queries of all heads that share
// a key head are processed together.

#ifndef GRUPO_PACKED_H
#define GRUPO_PACKED_H

#include "layer.h"

// Tokens begin..end; the segments that descend from it end at subtree_end.
typedef struct { n_t begin, end, subtree_end; } Segment;
// Tokens begin..end continue the cached tokens first..first + count.
typedef struct { n_t begin, end, first, count; } Prefix;
typedef struct { n_t token, head; } Stride;

typedef struct {
    gemm_t *gemm;
    int (*set_threads)(int);
    n_t threads, m, H, K, d, window, num_segments, num_prefixes;
    double scale;
    const Segment *segment;
    const Prefix *prefix;
    const n_t *position;               // (m) in the row
    const real *q, *k, *v;             // (m, H, d), (m, K, d), (m, K, d)
    Stride sq, sk, sv, so;             // of q, k, v and out
    const real *prefix_k, *prefix_v;   // (cached tokens, K, d)
    real *out, *lse;                   // (m, H, d), (m, H)
    n_t lse_stride;                    // from one token to the next
    const real *grad_out;              // (m, H, d)
    real *dq, *dk, *dv;                // (m, H, d), (m, K, d), (m, K, d)
} AttentionArgs;

typedef struct { n_t segment, from, to; } Block; // queries from..to of the packed tokens

// Keys and values of one key head. `position`: of the first key; `start`: its index in the packed
// tokens, -1 in a cached prefix.
typedef struct { const real *k, *v; n_t ldk, ldv, count, position, start; } KeyRange;

// Buffers of one thread for a block: queries, outputs and their gradients (rows, d), scores and
// their gradients (rows, KEY_TILE), running maximum and sum of each row.
typedef struct { real *q, *out, *grad_out, *p, *grad_scores, *max, *sum; } Workspace;

enum { QUERY_TILE = 128, KEY_TILE = 256 };

static inline n_t min_n(n_t a, n_t b) { return a < b ? a : b; }
static inline n_t max_n(n_t a, n_t b) { return a > b ? a : b; }

// c (m, n) = factor * a (m, k) b (k, n); `ta`, `tb`: 'T' for a^T (k, m) and b^T (n, k).
// `accumulate`: add the product to c.
static inline void matmul(const AttentionArgs *args, char ta, char tb, n_t m, n_t n, n_t k,
                          double factor, const real *a, n_t lda, const real *b, n_t ldb,
                          int accumulate, real *c, n_t ldc) {
    int M = m, N = n, D = k, A = lda, B = ldb, C = ldc;
    real alpha = factor, beta = accumulate;
    if (m && n && k) args->gemm(&tb, &ta, &N, &M, &D, &alpha, b, &B, a, &A, &beta, c, &C);
}

static inline KeyRange segment_keys(const AttentionArgs *args, n_t s, n_t head) {
    n_t begin = args->segment[s].begin, end = args->segment[s].end;
    return (KeyRange){args->k + begin * args->sk.token + head * args->sk.head,
                      args->v + begin * args->sv.token + head * args->sv.head,
                      args->sk.token, args->sv.token,
                      end - begin, end > begin ? args->position[begin] : 0, begin};
}

// Writes all key ranges of segment `s` to `keys`, its own last; returns their number.
// `parent`: the parent of each segment, or -1.
static inline n_t collect_keys(const AttentionArgs *args, const n_t *parent, n_t s, n_t head,
                               KeyRange *keys) {
    n_t count = 0, begin = args->segment[s].begin, ld = args->K * args->d;
    for (n_t i = 0; i < args->num_prefixes; i++) {
        const Prefix *p = args->prefix + i;
        if (begin < p->begin || begin >= p->end) continue;
        n_t at = p->first * ld + head * args->d;
        const real *k = args->prefix_k + at, *v = args->prefix_v + at;
        keys[count++] = (KeyRange){k, v, ld, ld, p->count, 0, -1};
    }
    for (n_t up = parent[s]; up >= 0; up = parent[up])
        if (args->segment[up].end > args->segment[up].begin)
            keys[count++] = segment_keys(args, up, head);
    keys[count++] = segment_keys(args, s, head);
    return count;
}

// Writes the parent of each segment; returns the largest number of key ranges of a segment.
static inline n_t find_parents(const AttentionArgs *args, n_t *parent) {
    n_t max_ranges = 0;
    for (n_t s = 0; s < args->num_segments; s++) {
        n_t up = s - 1, count = 1 + args->num_prefixes;
        while (up >= 0 && args->segment[up].subtree_end <= args->segment[s].begin) up = parent[up];
        for (parent[s] = up; up >= 0; up = parent[up]) count++;
        max_ranges = max_n(max_ranges, count);
    }
    return max_ranges;
}

// Copies the heads of x (shape of q) that share a key head to `out` (to - from, H / K, d), scaled.
static inline void pack_heads(const AttentionArgs *args, n_t from, n_t to, n_t head, double factor,
                              const real *x, Stride s, real *out) {
    n_t d = args->d, group = args->H / args->K;
    for (n_t i = from; i < to; i++)
        for (n_t j = 0; j < group; j++, out += d) {
            const real *row = x + i * s.token + (head * group + j) * s.head;
            for (n_t c = 0; c < d; c++) out[c] = factor * row[c];
        }
}

static inline void unpack_heads(const AttentionArgs *args, n_t from, n_t to, n_t head,
                                const real *x, real *out, Stride s) {
    n_t d = args->d, group = args->H / args->K;
    for (n_t i = from; i < to; i++)
        for (n_t j = 0; j < group; j++, x += d)
            memcpy(out + i * s.token + (head * group + j) * s.head, x, d * sizeof(real));
}

// Of the keys c..c + n of a range, query i sees *a..*b, counted from c.
static inline void visible_range(const AttentionArgs *args, const KeyRange *keys, int is_self,
                                 n_t i, n_t c, n_t n, n_t *a, n_t *b) {
    n_t near = args->position[i] + 1 - args->window - keys->position;
    n_t end = is_self ? i - keys->start + 1 : keys->count;
    *b = max_n(0, min_n(n, end - c));
    *a = min_n(*b, max_n(0, near - c));
}

// The first key of a range that any query of the block sees.
static inline n_t first_visible_key(const AttentionArgs *args, const Block *block,
                                    const KeyRange *keys) {
    return max_n(0, args->position[block->from] + 1 - args->window - keys->position);
}

// The end of the keys of range `s` that any query of the block sees.
static inline n_t visible_keys_end(const Block *block, const KeyRange *keys, n_t s, n_t count) {
    return s == count - 1 ? block->to - keys[s].start : keys[s].count;
}

static inline n_t aligned(n_t count) { return (count * sizeof(real) + 63) / 64 * 64 / sizeof(real); }

// Every thread's buffers are aligned alike: BLAS may round differently at another alignment, and
// chance decides which thread computes a block.
static inline Workspace make_workspace(const AttentionArgs *args, n_t rows) {
    n_t d = aligned(rows * args->d), n = aligned(rows * KEY_TILE);
    real *q = aligned_alloc(64, aligned(3 * d + 2 * n + 2 * rows) * sizeof(real)), *p = q + 3 * d;
    return (Workspace){q, q + d, q + 2 * d, p, p + n, p + 2 * n, p + 2 * n + rows};
}

#endif
