// Rows of logits of a large vocabulary: what is drawn, what is said of a token, and the way back.
//
// A row (V) is worked out by one thread, the same whatever its neighbours. Sums are doubles: the many
// unlikely tokens of a large vocabulary would be rounded away.
// `by` is 1 / temperature, and `at` (m) says where among the logits (.., V) a row's stand.

#include "layer.h"

#define BLOCK 256
#define LEAST (WIDE ? -708 : -87) // of logits below it the exponential is 0

#define EACH_ROW \
    _Pragma("omp parallel for num_threads(threads) schedule(static)") for (n_t i = 0; i < m; i++)
#define EACH_BLOCK(n) \
    for (n_t b = 0, n; n = V - b < BLOCK ? V - b : BLOCK, b < V; b += BLOCK)

static inline real highest(n_t V, const real *x) {
    real top = x[0];
#pragma omp simd reduction(max : top)
    for (n_t i = 0; i < V; i++) top = x[i] > top ? x[i] : top;
    return top;
}

static inline real raised(real z) { return z < LEAST ? LEAST : z; }

static inline real power(real z) { return z == LEAST ? 0 : expo(z); } // of what is raised

// The first token at which the sum of `e` (n) passes `goal`; or the last that adds to it.
static inline n_t passes(n_t n, const real *e, double goal) {
    n_t token = 0;
    for (n_t j = 0; j < n && goal >= 0; j++) {
        goal -= e[j];
        if (e[j] > 0) token = j;
    }
    return token;
}

// One token for each row at u (m) of the cumulated probabilities, and its log-probability.
void draw(n_t m, n_t V, n_t threads, double by, const real *logits, const double *u, n_t *token,
          real *logp) {
    EACH_ROW {
        const real *x = logits + i * V, top = highest(V, x), warm = by;
        double upto[V / BLOCK + 1], sum = 0;
        EACH_BLOCK(n) {
            double part = 0;
#pragma omp simd reduction(+ : part)
            for (n_t j = 0; j < n; j++) part += power(raised((x[b + j] - top) * warm));
            upto[b / BLOCK] = sum += part;
        }
        double goal = u[i] * sum;
        n_t block = 0, last = (V - 1) / BLOCK;
        while (block < last && upto[block] <= goal) block++;
        while (block > 0 && upto[block] == upto[block - 1]) block--; // where nothing was added
        n_t b = block * BLOCK, n = V - b < BLOCK ? V - b : BLOCK;
        real e[BLOCK];
#pragma omp simd
        for (n_t j = 0; j < n; j++) e[j] = power(raised((x[b + j] - top) * warm));
        token[i] = b + passes(n, e, goal - (block ? upto[block - 1] : 0));
        logp[i] = (x[token[i]] - top) * by - log(sum);
    }
}

// Of each row's token its log-probability, and the entropy of the row; `rest` (m, 2) is the way
// back's: the highest logit, and the log of the sum of exponentials of what is below it.
void say(n_t m, n_t V, n_t threads, double by, const real *logits, const n_t *at,
         const n_t *token, real *logp, real *entropy, real *rest) {
    EACH_ROW {
        const real *x = logits + at[i] * V, top = highest(V, x), warm = by;
        double sum = 0, dot = 0;
        EACH_BLOCK(n) {
            real part = 0, mean = 0;
#pragma omp simd reduction(+ : part, mean)
            for (n_t j = 0; j < n; j++) {
                real z = raised((x[b + j] - top) * warm), e = power(z);
                part += e;
                mean += e * z;
            }
            sum += part;
            dot += mean;
        }
        double total = log(sum);
        logp[i] = (x[token[i]] - top) * by - total;
        entropy[i] = total - dot / sum;
        rest[2 * i] = top;
        rest[2 * i + 1] = total;
    }
}

// Slopes (m, V) of logits from those of what was said of them; they may be written over the logits.
void blame(n_t m, n_t V, n_t threads, double by, const real *logits, const n_t *at,
           const n_t *token, const real *entropy, const real *rest, const real *of_logp,
           const real *of_entropy, real *out) {
    EACH_ROW {
        const real *x = logits + at[i] * V, top = rest[2 * i], total = rest[2 * i + 1], warm = by;
        real a = of_logp[i] * warm, h = of_entropy[i] * warm, H = entropy[i], *to = out + i * V;
#pragma omp simd
        for (n_t j = 0; j < V; j++) { // dH / dx_v = -p_v (log p_v + H)
            real z = raised((x[j] - top) * warm - total);
            to[j] = -power(z) * (a + h * (z + H));
        }
        to[token[i]] += a;
    }
}
