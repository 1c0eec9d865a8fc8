/* What a few queries of a head see of its keys and values, once these are packed. */

#include "vectors.h"

#define BLOCK 512                     /* keys of a block */
#define ROW (BLOCK + LANES) /* of their scores: rows a power of two apart would fall on the same places of a cache */
#define QUERIES (LANES == 16 ? 8 : 4) /* seen together: their sums stay in registers */

typedef struct {
    const char *data;
    int64_t batch, head, token; /* strides in elements; channels, or keys of a bias, are neighbours */
} view;

typedef struct {
    view q, k, v, out, bias; /* bias: without data there is none */
    float *logsum;           /* (batch, heads, queries), or nothing: of the exponentials */
    int64_t batch, heads, queries, keys, channels;
    double scale;
    int64_t half, threads; /* whether q, k, v and out are bfloat16 */
} task;

INLINE float element(const char *p, int64_t i, int half) {
    if (!half) return ((const float *)p)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
    float x;
    __builtin_memcpy(&x, &bits, 4);
    return x;
}

INLINE void put(char *p, int64_t i, float x, int half) {
    if (!half) {
        ((float *)p)[i] = x;
        return;
    }
    uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    bits = x == x ? bits + 0x7fff + (bits >> 16 & 1) : bits | 0x400000; /* to the nearest, ties to even */
    ((uint16_t *)p)[i] = bits >> 16;
}

INLINE const char *row(const view *a, int64_t batch, int64_t head, int64_t token, int half) {
    return a->data + (batch * a->batch + head * a->head + token * a->token) * (half ? 2 : 4);
}

/* LANES channels of a token from c on, of `channels` in all: 0 beyond. */
INLINE vec fetch(const char *p, int64_t c, int64_t channels, int half) {
    if (c + LANES <= channels) {
        if (!half) return load((const float *)p + c);
        ivec bits = __builtin_convertvector(*(const hvec *)((const uint16_t *)p + c), ivec) << 16;
        return (vec)bits;
    }
    float part[LANES] = {0};
    if (c + LANES / 2 == channels && !half) __builtin_memcpy(part, (const float *)p + c, 2 * LANES);
    else
        for (int64_t i = 0; c + i < channels; i++) part[i] = element(p, c + i, half);
    return load(part);
}

/* Tokens of a head as columns, (channels, up(keys)), and as rows, (keys, up(channels)): either may be left out. */
INLINE void pack(const view *from, float *columns, float *rows, int64_t keys, int64_t channels, int64_t batch, int64_t head,
                 int half) {
    int64_t wide = up(keys), deep = up(channels);
    for (int64_t c = 0; c < deep; c += LANES) {
        if (columns)
            for (int64_t first = 0; first < wide; first += LANES) {
                vec part[LANES];
                UNROLL for (int i = 0; i < LANES; i++)
                    part[i] = first + i < keys ? fetch(row(from, batch, head, first + i, half), c, channels, half) : (vec){};
                transpose(part);
                UNROLL for (int i = 0; i < LANES; i++)
                    if (c + i < channels) store(columns + (c + i) * wide + first, part[i]);
            }
        if (rows)
            for (int64_t i = 0; i < keys; i++)
                store(rows + i * deep + c, fetch(row(from, batch, head, i, half), c, channels, half));
    }
}

/* What a thread works with. */
typedef struct {
    float *keys;   /* (channels, up(keys)) */
    float *values; /* (keys, up(channels)) */
    float *scores; /* (QUERIES, ROW) */
    float *q;      /* (QUERIES, channels), times the scale and log2(e) */
    float *sums;   /* (QUERIES, up(channels)) */
} room;

/* Scores of n queries and `vectors` vectors of keys from `first` on. */
INLINE void score(float *to, const float *q, const float *keys, int64_t channels, int64_t wide, int64_t first, int64_t at,
                  const int n, const int vectors) {
    vec sum[8][2];
    UNROLL for (int i = 0; i < n; i++)
        UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (vec){};
    for (int64_t c = 0; c < channels; c++) {
        vec k[2];
        UNROLL for (int j = 0; j < vectors; j++) k[j] = load(keys + c * wide + first + j * LANES);
        UNROLL for (int i = 0; i < n; i++) {
            vec x = fill(q[i * channels + c]);
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += x * k[j];
        }
    }
    UNROLL for (int i = 0; i < n; i++)
        UNROLL for (int j = 0; j < vectors; j++) store(to + i * ROW + at + j * LANES, sum[i][j]);
}

/* As it, of `count` keys: a block. */
INLINE void scores(float *to, const float *q, const float *keys, int64_t channels, int64_t wide, int64_t first, int64_t count,
                   const int n) {
    int64_t full = up(count), at = 0;
    for (; at + 2 * LANES <= full; at += 2 * LANES) score(to, q, keys, channels, wide, first + at, at, n, 2);
    if (at < full) score(to, q, keys, channels, wide, first + at, at, n, 1);
}

/* sums += probabilities of `count` keys from `first` on, times their values: of `vectors` vectors of channels. */
INLINE void gather(float *sums, const float *p, const float *values, int64_t deep, int64_t first, int64_t count, int64_t c,
                   const int n, const int vectors) {
    vec sum[8][2];
    UNROLL for (int i = 0; i < n; i++)
        UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = load(sums + i * deep + c + j * LANES);
    for (int64_t k = 0; k < count; k++) {
        vec v[2];
        UNROLL for (int j = 0; j < vectors; j++) v[j] = load(values + (first + k) * deep + c + j * LANES);
        UNROLL for (int i = 0; i < n; i++) {
            vec x = fill(p[i * ROW + k]);
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += x * v[j];
        }
    }
    UNROLL for (int i = 0; i < n; i++)
        UNROLL for (int j = 0; j < vectors; j++) store(sums + i * deep + c + j * LANES, sum[i][j]);
}

/* As it, of all channels. */
INLINE void gathered(float *sums, const float *p, const float *values, int64_t deep, int64_t first, int64_t count, const int n) {
    int64_t c = 0;
    for (; c + 2 * LANES <= deep; c += 2 * LANES) gather(sums, p, values, deep, first, count, c, n, 2);
    if (c < deep) gather(sums, p, values, deep, first, count, c, n, 1);
}

INLINE void see(const task *t, const room *r, int64_t batch, int64_t head, int64_t first, const int n, int half) {
    int64_t channels = t->channels, keys = t->keys, wide = up(keys), deep = up(channels);
    vec most = fill(-INFINITY), total = (vec){}; /* a lane for each query */
    for (int i = 0; i < n; i++) {
        const char *q = row(&t->q, batch, head, first + i, half);
        for (int64_t c = 0; c < channels; c++) r->q[i * channels + c] = element(q, c, half) * (float)(t->scale * M_LOG2E);
        for (int64_t c = 0; c < deep; c++) r->sums[i * deep + c] = 0;
    }
    for (int64_t begin = 0; begin < keys; begin += BLOCK) {
        int64_t count = keys - begin < BLOCK ? keys - begin : BLOCK, full = up(count), whole = count / LANES * LANES;
        scores(r->scores, r->q, r->keys, channels, wide, begin, count, n);
        vec part[LANES] = {};
        UNROLL for (int i = 0; i < n; i++) {
            float *s = r->scores + i * ROW;
            const float *b = t->bias.data ? (const float *)row(&t->bias, batch, head, first + i, 0) + begin : 0;
            vec m = fill(-INFINITY);
            for (int64_t k = 0; k < whole; k += LANES) {
                vec x = load(s + k);
                if (b) store(s + k, x += load(b + k) * fill((float)M_LOG2E));
                m = larger(x, m);
            }
            if (whole < full) {
                vec x = load(s + whole);
                if (b) x += some(b + whole, count - whole, begin + whole) * fill((float)M_LOG2E);
                x = pick(lanes() < (int)(count - whole), x, fill(-INFINITY));
                store(s + whole, x);
                m = larger(x, m);
            }
            part[i] = m;
        }
        vec before = most;
        transpose(part);
        UNROLL for (int j = 0; j < LANES; j++) most = larger(part[j], most);
        vec from = pick(most == fill(-INFINITY), (vec){}, most), less = exp2_of(before - from);
        UNROLL for (int i = 0; i < LANES; i++) part[i] = (vec){};
        UNROLL for (int i = 0; i < n; i++) {
            float *s = r->scores + i * ROW;
            for (int64_t k = 0; k < full; k += LANES) {
                vec p = exp2_of(load(s + k) - fill(from[i]));
                store(s + k, p);
                part[i] += p;
            }
            if (begin && before[i] != most[i])
                for (int64_t c = 0; c < deep; c += LANES) store(r->sums + i * deep + c, load(r->sums + i * deep + c) * fill(less[i]));
        }
        transpose(part);
        if (begin) total = pick(before != most, total * less, total);
        UNROLL for (int j = 0; j < LANES; j++) total += part[j];
        gathered(r->sums, r->scores, r->values, deep, begin, count, n);
    }
    for (int i = 0; i < n; i++) {
        char *out = (char *)row(&t->out, batch, head, first + i, half);
        float share = total[i] == 0 ? 0 : 1 / total[i]; /* of keys that are all hidden nothing is seen */
        for (int64_t c = 0; c < channels; c++) put(out, c, r->sums[i * deep + c] * share, half);
        if (t->logsum) t->logsum[(batch * t->heads + head) * t->queries + first + i] = most[i] + log2f(total[i]);
    }
}
