/* A decision of many tours of each instance, on a CPU: a glimpse of the nodes, and which of them fits best.

   Keys, values and targets are packed once for all decisions.  A few tours go through all heads and on to the nodes that
   fit, so that what is known of them stays in the first-level cache.  decision.py calls this. */

#include "heads.h"

typedef struct {
    float *keys, *values;     /* (batch, heads, channels, up(nodes)) and (batch, heads, nodes, up(channels)) */
    float *targets, *offsets; /* (batch, width, up(nodes)) and (batch, nodes) */
    const float *of_current, *of_first, *of_numbers; /* of queries: (batch, nodes, width) both, (count, width); or nothing */
    int64_t batch, nodes, heads, channels, count;
    float scale, limit; /* of scores; where fits are cut off */
} instances;

typedef struct {
    const int64_t *current, *first; /* (batch, tours): where they are, and began */
    const float *numbers, *mask;    /* (batch, tours, count) and (batch, tours, mask_row): see `instances`; -inf or 0 */
    float *seen;                    /* (batch, tours, width): the glimpses */
    int64_t *chosen;                /* (batch, tours) */
    int64_t tours, mask_row;
    int glimpses, points, threads; /* which halves are asked for: seen comes out of the first, and goes into the second */
} decision;

INLINE void glimpse(const instances *s, const decision *d, room *r, float *query, int64_t b, int64_t first, const int n) {
    int64_t width = s->heads * s->channels, wide = up(s->nodes), deep = up(s->channels), tour = b * d->tours + first;
    for (int i = 0; i < n; i++) {
        float *q = query + i * width;
        const float *now = s->of_current + (b * s->nodes + d->current[tour + i]) * width;
        const float *began = s->of_first ? s->of_first + (b * s->nodes + d->first[tour + i]) * width : 0;
        for (int64_t c = 0; c < width; c++) q[c] = began ? began[c] + now[c] : now[c];
        for (int64_t k = 0; k < s->count; k++) {
            float x = d->numbers[(tour + i) * s->count + k];
            for (int64_t c = 0; c < width; c++) q[c] += x * s->of_numbers[k * width + c];
        }
    }
    task t = {.q = {(const char *)query, 0, s->channels, width},
              .out = {(const char *)(d->seen + tour * width), 0, s->channels, width},
              .bias = {(const char *)(d->mask + tour * d->mask_row), 0, 0, d->mask_row},
              .heads = s->heads, .queries = n, .keys = s->nodes, .channels = s->channels, .scale = s->scale};
    for (int64_t h = 0; h < s->heads; h++) {
        r->keys = s->keys + (b * s->heads + h) * s->channels * wide;
        r->values = s->values + (b * s->heads + h) * s->nodes * deep;
        see(&t, r, 0, h, 0, n, 0);
    }
}

/* The first of the nodes that fit best. */
INLINE void point(const instances *s, const decision *d, const room *r, int64_t b, int64_t first, const int n) {
    int64_t width = s->heads * s->channels, wide = up(s->nodes), tour = b * d->tours + first;
    float best[8];
    for (int i = 0; i < n; i++) best[i] = -INFINITY, d->chosen[tour + i] = 0;
    for (int64_t begin = 0; begin < s->nodes; begin += BLOCK) {
        int64_t count = s->nodes - begin < BLOCK ? s->nodes - begin : BLOCK;
        scores(r->scores, d->seen + tour * width, s->targets + b * width * wide, width, wide, begin, count, n);
        for (int i = 0; i < n; i++) {
            float *fit = r->scores + i * ROW, most = -INFINITY;
            const float *mask = d->mask + (tour + i) * d->mask_row + begin, *offset = s->offsets + b * s->nodes + begin;
            int64_t k = 0;
            vec high = fill(s->limit), m = fill(-INFINITY);
            for (; k + LANES <= count; k += LANES) {
                vec x = load(fit + k) + load(offset + k);
                x = larger(-high, pick(x > high, high, x)) + load(mask + k);
                store(fit + k, x);
                m = larger(x, m);
            }
            for (int j = 0; j < LANES; j++) most = m[j] > most ? m[j] : most;
            for (; k < count; k++) {
                float x = fit[k] + offset[k];
                fit[k] = (x > s->limit ? s->limit : x < -s->limit ? -s->limit : x) + mask[k];
                most = fit[k] > most ? fit[k] : most;
            }
            if (most > best[i]) {
                for (k = 0; fit[k] != most;) k++;
                best[i] = most, d->chosen[tour + i] = begin + k;
            }
        }
    }
}

INLINE void decide(const instances *s, const decision *d, room *r, float *query, int64_t b, int64_t first, const int n) {
    if (d->glimpses) glimpse(s, d, r, query, b, first, n);
    if (d->points) point(s, d, r, b, first, n);
}

/* 0, or 1 where memory was short. */
int decision_of(const instances *s, const decision *d) {
    int64_t width = s->heads * s->channels, groups = (d->tours + QUERIES - 1) / QUERIES;
    int64_t sizes[] = {QUERIES * ROW, QUERIES * s->channels, QUERIES * up(s->channels), BLOCK, QUERIES * width};
    int64_t floats = 0;
    for (int i = 0; i < 5; i++) floats += up(sizes[i]);
    int failed = 0;
#pragma omp parallel num_threads(d->threads) if (d->threads > 1)
    {
        float *own = aligned_alloc(64, (size_t)(4 * floats + 63) / 64 * 64);
        if (own) {
            float *at[5], *next = own;
            for (int i = 0; i < 5; i++) at[i] = next, next += up(sizes[i]);
            room r = {0, 0, at[0], at[1], at[2], at[3]};
#pragma omp for schedule(static)
            for (int64_t i = 0; i < s->batch * groups; i++) {
                int64_t b = i / groups, first = i % groups * QUERIES;
                if (first + QUERIES <= d->tours) decide(s, d, &r, at[4], b, first, QUERIES);
                else for (; first < d->tours; first++) decide(s, d, &r, at[4], b, first, 1);
            }
            free(own);
        } else
            failed = 1;
    }
    return failed;
}
