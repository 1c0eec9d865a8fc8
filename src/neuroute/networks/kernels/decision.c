/* A decision of many tours of each instance, on a CPU: a glimpse of the nodes, and which of them fits best.

   A glimpse is an attention or, with pairs and distances, what `blocks.layers` computes.  Keys, values and targets are
   packed once for all decisions.  A few tours go through all heads and on to the nodes that fit, so that what is known of
   them stays in the first-level cache.  decision.py calls this. */

#include "heads.h"

typedef struct {
    float *keys, *values;     /* (batch, heads, channels, up(nodes)) and (batch, heads, nodes, up(channels)) */
    float *targets, *offsets; /* (batch, experts, width, up(nodes)) and (batch, experts, nodes); without experts as of one */
    const float *of_current, *of_first, *of_numbers; /* of queries: (batch, nodes, width) both, (count, width); or nothing */
    const float *pairs, *distances; /* (batch, nodes, 2 width), (batch, nodes, nodes); or nothing */
    int64_t batch, nodes, heads, channels, count, experts;
    double scale, limit; /* of scores, or of what an attention-free module sees; where fits are cut off */
    double glimpse_slope, fit_slope; /* distances, times these, are added to scores and to fits */
} instances;

typedef struct {
    instances shared;
    const int64_t *current, *first; /* (batch, tours): where they are, and began */
    const float *numbers, *mask;    /* (batch, tours, count) and (batch, tours, mask_row): see `instances`; -inf or 0 */
    const float *shares;            /* (batch, tours, experts): how much each expert counts; or nothing */
    float *seen;                    /* (batch, tours, width): the glimpses */
    int64_t *chosen;                /* (batch, tours) */
    int64_t tours, mask_row;
    int64_t glimpses, points, threads; /* which halves are asked for: seen comes out of the first, and goes into the second */
} decision;

/* What a thread works with: that of an attention, and how well nodes fit, of one expert: (QUERIES, ROW). */
typedef struct {
    room see;
    float *fits, *query; /* query: (QUERIES, width) */
} desk;

INLINE void ask(const instances *s, const decision *d, float *query, int64_t b, int64_t first, const int n) {
    int64_t width = s->heads * s->channels, tour = b * d->tours + first;
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
}

/* Distances of all nodes from where a tour is. */
INLINE const float *from_here(const instances *s, const decision *d, int64_t b, int64_t tour) {
    return s->distances + (b * s->nodes + d->current[tour]) * s->nodes;
}

/* sigmoid(q) times the mean of the nodes' values, which their keys and exp(bias) weigh. */
INLINE void mix(const instances *s, const decision *d, room *r, const float *query, int64_t b, int64_t first, const int n) {
    int64_t width = s->channels, deep = 2 * width, tour = b * d->tours + first;
    float most[8];
    vec slope = fill((float)s->glimpse_slope), log2e = fill((float)M_LOG2E);
    for (int i = 0; i < n; i++) {
        const float *mask = d->mask + (tour + i) * d->mask_row, *far = from_here(s, d, b, tour + i);
        vec m = fill(-INFINITY);
        int64_t k = 0;
        for (; k + LANES <= s->nodes; k += LANES) m = larger(load(mask + k) + slope * load(far + k), m);
        for (; k < s->nodes; k++) m[0] = mask[k] + slope[0] * far[k] > m[0] ? mask[k] + slope[0] * far[k] : m[0];
        most[i] = -INFINITY;
        for (int j = 0; j < LANES; j++) most[i] = m[j] > most[i] ? m[j] : most[i];
        for (int64_t c = 0; c < deep; c++) r->sums[i * deep + c] = 0;
    }
    for (int64_t begin = 0; begin < s->nodes; begin += BLOCK) {
        int64_t count = s->nodes - begin < BLOCK ? s->nodes - begin : BLOCK;
        for (int i = 0; i < n; i++) {
            const float *mask = d->mask + (tour + i) * d->mask_row + begin, *far = from_here(s, d, b, tour + i) + begin;
            float *p = r->scores + i * ROW;
            int64_t k = 0;
            for (; k + LANES <= count; k += LANES)
                store(p + k, exp2_of((load(mask + k) + slope * load(far + k) - fill(most[i])) * log2e));
            for (; k < count; k++) p[k] = exp2_of(fill((mask[k] + slope[0] * far[k] - most[i]) * log2e[0]))[0];
        }
        gathered(r->sums, r->scores, s->pairs + b * s->nodes * deep, deep, begin, count, n);
    }
    for (int i = 0; i < n; i++)
        for (int64_t c = 0; c < width; c += LANES) {
            const float *sums = r->sums + i * deep + c;
            vec q = load(query + i * width + c), e = exp2_of(-larger(q, -q) * log2e), one = fill(1);
            vec open = pick(q > (vec){}, one, e) / (one + e); /* a sigmoid */
            store(d->seen + (tour + i) * width + c, open * (load(sums) / load(sums + width)) * fill((float)s->scale));
        }
}

INLINE void glimpse(const instances *s, const decision *d, room *r, float *query, int64_t b, int64_t first, const int n) {
    int64_t width = s->heads * s->channels, wide = up(s->nodes), deep = up(s->channels), tour = b * d->tours + first;
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

/* Into the room's scores: how well `count` nodes from `begin` on fit, of all experts that count, each as much as it does. */
INLINE void share(const instances *s, const decision *d, const desk *r, int64_t b, int64_t tour, int64_t begin, int64_t count,
                  const int n) {
    int64_t width = s->heads * s->channels, wide = up(s->nodes), full = up(count), m = s->experts;
    const float *shares = d->shares + tour * m;
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < full; k += LANES) store(r->see.scores + i * ROW + k, (vec){});
    for (int64_t e = 0; e < m; e++) {
        int counts = 0;
        for (int i = 0; i < n; i++) counts |= shares[i * m + e] != 0;
        if (!counts) continue;
        const float *offset = s->offsets + (b * m + e) * s->nodes + begin;
        scores(r->fits, d->seen + tour * width, s->targets + (b * m + e) * width * wide, width, wide, begin, count, n);
        for (int64_t k = 0; k < full; k += LANES) {
            vec more = k + LANES <= count ? load(offset + k) : some(offset + k, count - k, begin + k);
            for (int i = 0; i < n; i++) {
                float *fit = r->see.scores + i * ROW + k;
                store(fit, load(fit) + fill(shares[i * m + e]) * (load(r->fits + i * ROW + k) + more));
            }
        }
    }
}

/* The first of the nodes that fit best. */
INLINE void point(const instances *s, const decision *d, const desk *r, int64_t b, int64_t first, const int n) {
    int64_t width = s->heads * s->channels, wide = up(s->nodes), tour = b * d->tours + first;
    float best[8];
    for (int i = 0; i < n; i++) best[i] = -INFINITY, d->chosen[tour + i] = 0;
    for (int64_t begin = 0; begin < s->nodes; begin += BLOCK) {
        int64_t count = s->nodes - begin < BLOCK ? s->nodes - begin : BLOCK;
        if (d->shares) share(s, d, r, b, tour, begin, count, n);
        else scores(r->see.scores, d->seen + tour * width, s->targets + b * width * wide, width, wide, begin, count, n);
        for (int i = 0; i < n; i++) {
            float *fit = r->see.scores + i * ROW, most = -INFINITY;
            const float *mask = d->mask + (tour + i) * d->mask_row + begin;
            const float *offset = (s->pairs ? from_here(s, d, b, tour + i) : s->offsets + b * s->nodes) + begin;
            float times = s->pairs ? (float)s->fit_slope : d->shares ? 0 : 1;
            vec high = fill((float)s->limit), m = fill(-INFINITY);
            for (int64_t k = 0; k < count; k += LANES) {
                int64_t left = count - k;
                int whole = left >= LANES;
                vec x = load(fit + k) + fill(times) * (whole ? load(offset + k) : some(offset + k, left, begin + k));
                x = larger(-high, pick(x > high, high, x)) + (whole ? load(mask + k) : some(mask + k, left, begin + k));
                x = whole ? x : pick(lanes() < (int)left, x, fill(-INFINITY));
                store(fit + k, x);
                m = larger(x, m);
            }
            for (int j = 0; j < LANES; j++) most = m[j] > most ? m[j] : most;
            if (most > best[i]) {
                int64_t k = 0;
                while (fit[k] != most) k++;
                best[i] = most, d->chosen[tour + i] = begin + k;
            }
        }
    }
}

INLINE void decide(const decision *d, desk *r, int64_t b, int64_t first, const int n) {
    const instances *s = &d->shared;
    if (d->glimpses) {
        ask(s, d, r->query, b, first, n);
        if (s->pairs) mix(s, d, &r->see, r->query, b, first, n);
        else glimpse(s, d, &r->see, r->query, b, first, n);
    }
    if (d->points) point(s, d, r, b, first, n);
}

static void decide_some(const void *of, int64_t i, float *at) {
    const decision *d = of;
    const instances *s = &d->shared;
    int64_t groups = (d->tours + QUERIES - 1) / QUERIES, b = i / groups, first = i % groups * QUERIES;
    int64_t sums = s->pairs ? 2 * s->channels : up(s->channels);
    desk r = {.see = {.scores = at, .q = at + 2 * QUERIES * ROW}, .fits = at + QUERIES * ROW};
    r.see.sums = r.see.q + up(QUERIES * s->channels), r.query = r.see.sums + QUERIES * sums;
    if (first + QUERIES <= d->tours) decide(d, &r, b, first, QUERIES);
    else {
        for (; first + 2 <= d->tours; first += 2) decide(d, &r, b, first, 2);
        if (first < d->tours) decide(d, &r, b, first, 1);
    }
}

/* 0, or 1 where memory was short. */
int64_t decide_all(const decision *d) {
    const instances *s = &d->shared;
    int64_t width = s->heads * s->channels, groups = (d->tours + QUERIES - 1) / QUERIES;
    int64_t floats = 2 * QUERIES * ROW + up(QUERIES * s->channels) + QUERIES * (2 * up(s->channels) + width);
    return share_out(decide_some, d, s->batch * groups, d->threads, floats);
}
