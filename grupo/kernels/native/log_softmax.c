// Rows of logits of a large vocabulary: sampling, log-probability and entropy, and their gradient.
//
// One thread computes a row (V), so that the result does not depend on the other rows. Sums are
// doubles: float32 would round away the many unlikely tokens of a large vocabulary.
// `inv_temperature`: 1 / temperature; `row_index` (m): the row of the logits (.., V) of each token.

#include "layer.h"

#define BLOCK 256
#define MIN_EXP_ARG (WIDE ? -708 : -87) // the exponential of smaller arguments is 0

#define EACH_ROW \
    _Pragma("omp parallel for num_threads(threads) schedule(static)") for (n_t i = 0; i < m; i++)
#define EACH_BLOCK(n) \
    for (n_t b = 0, n; n = V - b < BLOCK ? V - b : BLOCK, b < V; b += BLOCK)

static inline real row_max(n_t V, const real *x) {
    real max = x[0];
#pragma omp simd reduction(max : max)
    for (n_t i = 0; i < V; i++) max = x[i] > max ? x[i] : max;
    return max;
}

static inline real clamp_exp_arg(real z) { return z < MIN_EXP_ARG ? MIN_EXP_ARG : z; }

// Takes a value of clamp_exp_arg.
static inline real clamped_exp(real z) { return z == MIN_EXP_ARG ? 0 : fast_exp(z); }

// The first token at which the cumulative sum of `e` (n) exceeds `goal`, or the last with e > 0.
static inline n_t inverse_cdf(n_t n, const real *e, double goal) {
    n_t token = 0;
    for (n_t j = 0; j < n && goal >= 0; j++) {
        goal -= e[j];
        if (e[j] > 0) token = j;
    }
    return token;
}

// Samples one token for each row by inverse CDF at u (m); writes its log-probability.
void sample(n_t m, n_t V, n_t threads, double inv_temperature, const real *logits,
            const double *u, n_t *token, real *logp) {
    EACH_ROW {
        const real *x = logits + i * V, max = row_max(V, x), scale = inv_temperature;
        double cumulative[V / BLOCK + 1], sum = 0;
        EACH_BLOCK(n) {
            double part = 0;
#pragma omp simd reduction(+ : part)
            for (n_t j = 0; j < n; j++)
                part += clamped_exp(clamp_exp_arg((x[b + j] - max) * scale));
            cumulative[b / BLOCK] = sum += part;
        }
        double goal = u[i] * sum;
        n_t block = 0, last = (V - 1) / BLOCK;
        while (block < last && cumulative[block] <= goal) block++;
        // blocks without probability
        while (block > 0 && cumulative[block] == cumulative[block - 1]) block--;
        n_t b = block * BLOCK, n = V - b < BLOCK ? V - b : BLOCK;
        real e[BLOCK];
#pragma omp simd
        for (n_t j = 0; j < n; j++) e[j] = clamped_exp(clamp_exp_arg((x[b + j] - max) * scale));
        token[i] = b + inverse_cdf(n, e, goal - (block ? cumulative[block - 1] : 0));
        logp[i] = (x[token[i]] - max) * inv_temperature - log(sum);
    }
}

// Log-probability of each row's token and entropy of the row. `row_stats` (m, 2) is kept for the
// backward pass: the largest logit, and the log-sum-exp relative to it.
void logp_and_entropy(n_t m, n_t V, n_t threads, double inv_temperature, const real *logits,
                      const n_t *row_index, const n_t *token, real *logp, real *entropy,
                      real *row_stats) {
    EACH_ROW {
        const real *x = logits + row_index[i] * V, max = row_max(V, x), scale = inv_temperature;
        double sum = 0, dot = 0;
        EACH_BLOCK(n) {
            real part = 0, mean = 0;
#pragma omp simd reduction(+ : part, mean)
            for (n_t j = 0; j < n; j++) {
                real z = clamp_exp_arg((x[b + j] - max) * scale), e = clamped_exp(z);
                part += e;
                mean += e * z;
            }
            sum += part;
            dot += mean;
        }
        double log_sum = log(sum);
        logp[i] = (x[token[i]] - max) * inv_temperature - log_sum;
        entropy[i] = log_sum - dot / sum;
        row_stats[2 * i] = max;
        row_stats[2 * i + 1] = log_sum;
    }
}

// Gradient (m, V) of the logits from those of log-probabilities and entropies; `out` may be the
// logits themselves.
void logp_and_entropy_backward(n_t m, n_t V, n_t threads, double inv_temperature,
                               const real *logits, const n_t *row_index, const n_t *token,
                               const real *entropy, const real *row_stats, const real *grad_logp,
                               const real *grad_entropy, real *out) {
    EACH_ROW {
        const real *x = logits + row_index[i] * V, max = row_stats[2 * i];
        const real log_sum = row_stats[2 * i + 1], scale = inv_temperature;
        real a = grad_logp[i] * scale, h = grad_entropy[i] * scale, H = entropy[i];
        real *grad = out + i * V;
#pragma omp simd
        for (n_t j = 0; j < V; j++) { // dH / dx_v = -p_v (log p_v + H)
            real z = clamp_exp_arg((x[j] - max) * scale - log_sum);
            grad[j] = -clamped_exp(z) * (a + h * (z + H));
        }
        grad[token[i]] += a;
    }
}
