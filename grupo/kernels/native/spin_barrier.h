// A barrier of the threads of a parallel region, which wait by spinning.
//
// Between two barriers of a decode step there is often less than a millisecond of work. With other
// programs on the same cores, OpenMP's own barriers cost a decode step 0.3 to 0.4 of its time.

#ifndef GRUPO_SPIN_BARRIER_H
#define GRUPO_SPIN_BARRIER_H

#include <sched.h>
#include <stdatomic.h>

// Some tens of microseconds; after them the thread offers its core to others while it waits.
enum { SPINS = 1000 };

typedef struct { atomic_int arrived, phase; } Barrier;

static inline void spin(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

// Waits until all `threads` have arrived; what each wrote before is then visible to the others.
static inline void wait_for_all(Barrier *b, int threads) {
    int phase = atomic_load_explicit(&b->phase, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == threads) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&b->phase, phase + 1, memory_order_release);
        return;
    }
    for (int i = 0; atomic_load_explicit(&b->phase, memory_order_acquire) == phase; i++)
        i < SPINS ? spin() : (void)sched_yield();
}

#endif
