/* Vectors of LANES floats: 16 with AVX-512, 8 with AVX2. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t hvec __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

INLINE vec fill(float x) { return x - (vec){}; }
INLINE vec load(const float *p) { return *(const vec *)p; }
INLINE void store(float *p, vec x) { *(vec *)p = x; }
INLINE vec pick(ivec mask, vec a, vec b) { return (vec)(((ivec)a & mask) | ((ivec)b & ~mask)); }
INLINE vec larger(vec a, vec b) { return pick(a > b, a, b); }
INLINE ivec lanes(void) {
    ivec lane;
    UNROLL for (int i = 0; i < LANES; i++) lane[i] = i;
    return lane;
}

/* In all lanes, what they add up to. */
INLINE vec summed(vec x) {
    UNROLL for (int s = LANES / 2; s; s /= 2) x += __builtin_shuffle(x, lanes() ^ s);
    return x;
}

/* The last n < LANES floats of an array, from p on, of which `before` lie before them; anything beyond. */
INLINE vec some(const float *p, int64_t n, int64_t before) {
    if (before >= LANES - n) return __builtin_shuffle(load(p + n - LANES), lanes() - (int)n);
    float part[LANES] = {0};
    for (int64_t i = 0; i < n; i++) part[i] = p[i];
    return load(part);
}
INLINE int64_t up(int64_t n) { return (n + LANES - 1) / LANES * LANES; }

/* 2^x for x <= 0, to a relative 1e-7; 0 below 2^-126, NaN of NaN. */
INLINE vec exp2_of(vec x) {
    const vec shift = fill(12582912.0f); /* 1.5 * 2^23: what is added to it is rounded to an integer, in its last bits */
    vec shifted = x + shift, f = x - (shifted - shift);
    vec y = fill(1.32765e-3f);
    y = y * f + fill(9.67554e-3f);
    y = y * f + fill(5.550713e-2f);
    y = y * f + fill(2.402212e-1f);
    y = y * f + fill(6.9314697e-1f);
    y = y * f + fill(1.00000007f);
    vec power = (vec)(((ivec)shifted << 23) + (127 << 23));
    return pick(x < fill(-126.0f), (vec){}, y * power);
}

/* Vector i becomes lane i of all: halves change places, then quarters, and so on. */
INLINE void transpose(vec *rows) {
    ivec lane = lanes();
    UNROLL for (int s = LANES / 2; s; s /= 2) {
        ivec low = ((lane & s) != 0) & (LANES - s), high = ((lane & s) != 0) & (LANES - s);
        UNROLL for (int i = 0; i < LANES; i++) {
            if (i & s) continue;
            vec a = rows[i], b = rows[i + s];
            rows[i] = __builtin_shuffle(a, b, lane + low);
            rows[i + s] = __builtin_shuffle(a, b, lane + s + high);
        }
    }
}

/* Room for so many floats, which a thread keeps for its next call: new pages would take longer than small layers.  Nothing
   where memory is short. */
static float *own_room(int64_t floats) {
    static _Thread_local float *own;
    static _Thread_local int64_t size;
    if (floats > size) {
        free(own);
        own = aligned_alloc(64, (size_t)(4 * floats + 63) / 64 * 64);
        size = own ? floats : 0;
    }
    return own;
}

/* Share `count` pieces of work out among threads, each with room for so many floats: 0, or 1 where memory was short. */
INLINE int64_t share_out(void (*work)(const void *task, int64_t piece, float *room), const void *task, int64_t count,
                         int64_t threads, int64_t floats) {
    int64_t failed = 0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float *room = own_room(floats);
        if (!room) failed = 1;
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++)
            if (room) work(task, i, room);
    }
    return failed;
}

/* Pieces of each of so many heads or instances, so that every thread has work. */
INLINE int64_t pieces(int64_t all, int64_t threads) { return all && all < threads ? (threads + all - 1) / all : 1; }
