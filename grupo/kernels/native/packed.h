// Attention within a line of tokens that share stretches: who sees what.
//
// A token sees its stretch up to itself, every stretch that it goes on from, and what is remembered
// from before the line; of all that, what is near enough. A block of queries of one stretch looks
// at one of these after the other, its own stretch last; queries of all heads that share a head of
// keys stand together.

#ifndef GRUPO_LINE
#define GRUPO_LINE

#include "layer.h"

typedef struct { n_t begin, end, last; } Stretch;      // begin..end, and what goes on from it
typedef struct { n_t begin, end, first, count; } Past; // begin..end come after so many remembered
typedef struct { n_t token, head; } Stride;            // from one token to the next, of heads too

typedef struct {
    gemm_t *gemm;
    int (*alone)(int);
    n_t threads, m, H, K, d, window, stretches, pasts;
    double scale;
    const Stretch *stretch;
    const Past *past;
    const n_t *position;            // (m)
    const real *q, *k, *v;          // (m, H, d), (m, K, d), (m, K, d)
    Stride sq, sk, sv, so;
    const real *past_k, *past_v;    // (remembered, K, d)
    real *out, *total;              // (m, H, d), (m, H), `st` from one token to the next
    n_t st;
    const real *slope;              // (m, H, d)
    real *dq, *dk, *dv;             // (m, H, d), (m, K, d), (m, K, d)
} Line;

typedef struct { n_t stretch, from, to; } Block; // queries from..to of the line
typedef struct { const real *k, *v; n_t ldk, ldv, count, first, line; } Seen; // `line`: -1 if past

// Of queries: themselves, outputs or their slopes, what is known of each; and scores of some keys.
typedef struct { real *q, *out, *slope, *p, *push, *top, *sum; } Work;

enum { ROWS = 128, TILE = 256 };

static inline n_t least(n_t a, n_t b) { return a < b ? a : b; }
static inline n_t most(n_t a, n_t b) { return a > b ? a : b; }

// c (m, n) = a (m, k) b (k, n), or b^T (n, k), or a^T (k, m); `into`: added to what is there
static inline void product(const Line *l, char ta, char tb, n_t m, n_t n, n_t k, double by,
                           const real *a, n_t lda, const real *b, n_t ldb, int into, real *c,
                           n_t ldc) {
    int M = m, N = n, D = k, A = lda, B = ldb, C = ldc;
    real alpha = by, beta = into;
    if (m && n && k) l->gemm(&tb, &ta, &N, &M, &D, &alpha, b, &B, a, &A, &beta, c, &C);
}

static inline Seen within(const Line *l, n_t s, n_t head) {
    n_t begin = l->stretch[s].begin, end = l->stretch[s].end;
    return (Seen){l->k + begin * l->sk.token + head * l->sk.head,
                  l->v + begin * l->sv.token + head * l->sv.head, l->sk.token, l->sv.token,
                  end - begin, end > begin ? l->position[begin] : 0, begin};
}

// All that stretch `s` sees, itself last; `parent` is the stretch that each goes on from, or -1.
static inline n_t gather(const Line *l, const n_t *parent, n_t s, n_t head, Seen *seen) {
    n_t count = 0, begin = l->stretch[s].begin, ld = l->K * l->d;
    for (n_t i = 0; i < l->pasts; i++) {
        const Past *p = l->past + i;
        if (begin < p->begin || begin >= p->end) continue;
        n_t at = p->first * ld + head * l->d;
        seen[count++] = (Seen){l->past_k + at, l->past_v + at, ld, ld, p->count, 0, -1};
    }
    for (n_t up = parent[s]; up >= 0; up = parent[up])
        if (l->stretch[up].end > l->stretch[up].begin) seen[count++] = within(l, up, head);
    seen[count++] = within(l, s, head);
    return count;
}

// Which stretch each goes on from; the most parts that one of them may see.
static inline n_t parents(const Line *l, n_t *parent) {
    n_t parts = 0;
    for (n_t s = 0; s < l->stretches; s++) {
        n_t up = s - 1, count = 1 + l->pasts;
        while (up >= 0 && l->stretch[up].last <= l->stretch[s].begin) up = parent[up];
        for (parent[s] = up; up >= 0; up = parent[up]) count++;
        parts = most(parts, count);
    }
    return parts;
}

// Rows of q, or of what has its shape, of one head of keys: (to - from, H / K, d), side by side.
static inline void pack(const Line *l, n_t from, n_t to, n_t head, double by, const real *x,
                        Stride s, real *out) {
    n_t d = l->d, each = l->H / l->K;
    for (n_t i = from; i < to; i++)
        for (n_t j = 0; j < each; j++, out += d) {
            const real *row = x + i * s.token + (head * each + j) * s.head;
            for (n_t c = 0; c < d; c++) out[c] = by * row[c];
        }
}

static inline void unpack(const Line *l, n_t from, n_t to, n_t head, const real *x, real *out,
                          Stride s) {
    n_t d = l->d, each = l->H / l->K;
    for (n_t i = from; i < to; i++)
        for (n_t j = 0; j < each; j++, x += d)
            memcpy(out + i * s.token + (head * each + j) * s.head, x, d * sizeof(real));
}

// Which of `c..c + n` a query at the line's place i sees of `seen`: from *a to *b of these.
static inline void span(const Line *l, const Seen *seen, int own, n_t i, n_t c, n_t n, n_t *a,
                        n_t *b) {
    n_t near = l->position[i] + 1 - l->window - seen->first;
    n_t end = own ? i - seen->line + 1 : seen->count;
    *b = most(0, least(n, end - c));
    *a = least(*b, most(0, near - c));
}

// The first key that any of a block sees, and the last.
static inline n_t nearest(const Line *l, const Block *block, const Seen *seen) {
    return most(0, l->position[block->from] + 1 - l->window - seen->first);
}

static inline n_t farthest(const Block *block, const Seen *seen, n_t s, n_t count) {
    return s == count - 1 ? block->to - seen[s].line : seen[s].count;
}

static inline Work work(const Line *l, n_t rows) {
    n_t d = rows * l->d, n = rows * TILE;
    real *q = malloc((3 * d + 2 * n + 2 * rows) * sizeof(real)), *p = q + 3 * d;
    return (Work){q, q + d, q + 2 * d, p, p + n, p + 2 * n, p + 2 * n + rows};
}

#endif
