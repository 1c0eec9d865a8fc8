/* softmax(scale q k^T + bias) v for heads of a few channels, on a CPU.  attention.py calls this.

   A vector has LANES floats: 16 with AVX-512, 8 with AVX2.  The keys of a head are packed once with a row for each
   channel, so that a vector holds one channel of LANES keys.  Then a few queries at a time look at a block of keys,
   whose scores stay in the first-level cache between the two products; more keys are seen block by block, with a
   running maximum.  A query belongs to one thread: results do not depend on how many there are. */

#include "heads.h"

/* Up to QUERIES of `all` rows of a head that are needed next: to fetch them ahead is safe wherever they lie. */
INLINE void expect(const view *from, int64_t all, int64_t batch, int64_t head, int64_t first, int half) {
    for (int64_t i = first; i < first + QUERIES && i < all; i++) __builtin_prefetch(row(from, batch, head, i, half));
}

static void head(const task *t, const room *r, int64_t which, int64_t first, int64_t stop, int half) {
    int64_t batch = which / t->heads, h = which % t->heads;
    pack(&t->k, r->keys, 0, t->keys, t->channels, batch, h, half);
    pack(&t->v, 0, r->values, t->keys, t->channels, batch, h, half);
    for (; first + QUERIES <= stop; first += QUERIES) {
        expect(&t->q, stop, batch, h, first + QUERIES, half);
        expect(&t->k, t->keys, batch, h + 1, first, half), expect(&t->v, t->keys, batch, h + 1, first, half);
        see(t, r, batch, h, first, QUERIES, half);
    }
    for (; first + 4 <= stop; first += 4) see(t, r, batch, h, first, 4, half);
    for (; first + 2 <= stop; first += 2) see(t, r, batch, h, first, 2, half);
    for (; first < stop; first++) see(t, r, batch, h, first, 1, half);
}

static void piece(const void *of, int64_t i, float *at) {
    const task *t = of;
    int64_t deep = up(t->channels), parts = pieces(t->batch * t->heads, t->threads);
    int64_t each = (t->queries + parts - 1) / parts, first = i % parts * each;
    int64_t stop = first + each < t->queries ? first + each : t->queries;
    room r = {.keys = at};
    r.values = r.keys + up(t->channels * up(t->keys));
    r.scores = r.values + up(t->keys * deep);
    r.q = r.scores + up(QUERIES * ROW);
    r.sums = r.q + up(QUERIES * t->channels);
    if (t->half) head(t, &r, i / parts, first, stop, 1);
    else head(t, &r, i / parts, first, stop, 0);
}

/* 0, or 1 where memory was short. */
int64_t attention(const task *t) {
    int64_t all = t->batch * t->heads, deep = up(t->channels);
    int64_t floats = up(t->channels * up(t->keys)) + up(t->keys * deep) + up(QUERIES * ROW) + up(QUERIES * t->channels);
    return share_out(piece, t, all * pieces(all, t->threads), t->threads, floats + QUERIES * deep);
}

typedef struct {
    task forward;
    view given, dq, dk, dv; /* given: the gradient of out */
} back;

/* What a thread works with, on the way back. */
typedef struct {
    float *keys, *values;       /* as columns */
    float *key_rows;            /* (keys, up(channels)) */
    float *dk, *dv;             /* the same */
    float *p, *ds;              /* (QUERIES, ROW) */
    float *q, *g;               /* (QUERIES, channels): queries times the scale and log2(e), and the gradient of out */
    float *q_rows, *g_rows, *dq; /* (QUERIES, up(channels)) */
} back_room;

/* to[k] += sum over queries of x[query, k] rows[query], of `vectors` vectors of channels. */
INLINE void spread(float *to, const float *x, const float *rows, int64_t deep, int64_t count, const int n) {
    for (int64_t c = 0; c < deep; c += LANES) {
        vec row[8];
        UNROLL for (int i = 0; i < n; i++) row[i] = load(rows + i * deep + c);
        for (int64_t k = 0; k < count; k++) {
            vec sum = load(to + k * deep + c);
            UNROLL for (int i = 0; i < n; i++) sum += fill(x[i * ROW + k]) * row[i];
            store(to + k * deep + c, sum);
        }
    }
}

INLINE void learn(const back *b, const back_room *r, int64_t batch, int64_t head, int64_t first, const int n, int half) {
    const task *t = &b->forward;
    int64_t channels = t->channels, keys = t->keys, wide = up(keys), deep = up(channels);
    vec delta[8];
    UNROLL for (int i = 0; i < n; i++) {
        const char *q = row(&t->q, batch, head, first + i, half), *g = row(&b->given, batch, head, first + i, half);
        const char *out = row(&t->out, batch, head, first + i, half);
        delta[i] = (vec){};
        for (int64_t c = 0; c < deep; c += LANES) { /* rows of q and g reach into the next one's, which follows */
            vec x = fetch(q, c, channels, half) * fill((float)t->scale), y = fetch(g, c, channels, half);
            store(r->q + i * channels + c, x * fill((float)M_LOG2E)), store(r->g + i * channels + c, y);
            store(r->q_rows + i * deep + c, x), store(r->g_rows + i * deep + c, y), store(r->dq + i * deep + c, (vec){});
            delta[i] += y * fetch(out, c, channels, half);
        }
        delta[i] = summed(delta[i]);
    }
    for (int64_t begin = 0; begin < keys; begin += BLOCK) {
        int64_t count = keys - begin < BLOCK ? keys - begin : BLOCK, full = up(count);
        scores(r->p, r->q, r->keys, channels, wide, begin, count, n);
        scores(r->ds, r->g, r->values, channels, wide, begin, count, n);
        for (int i = 0; i < n; i++) {
            float *p = r->p + i * ROW, *ds = r->ds + i * ROW;
            float logsum = t->logsum[(batch * t->heads + head) * t->queries + first + i];
            vec from = fill(logsum == -INFINITY ? 0 : logsum);
            if (t->bias.data) {
                const float *bias = (const float *)row(&t->bias, batch, head, first + i, 0) + begin;
                for (int64_t k = 0; k < count; k++) p[k] += bias[k] * (float)M_LOG2E;
            }
            for (int64_t k = 0; k < full; k += LANES) {
                vec x = exp2_of(load(p + k) - from);
                store(p + k, x);
                store(ds + k, x * (load(ds + k) - delta[i]));
            }
        }
        gathered(r->dq, r->ds, r->key_rows, deep, begin, count, n);
        spread(r->dk + begin * deep, r->ds, r->q_rows, deep, count, n);
        spread(r->dv + begin * deep, r->p, r->g_rows, deep, count, n);
    }
    for (int i = 0; i < n; i++) {
        char *dq = (char *)row(&b->dq, batch, head, first + i, half);
        for (int64_t c = 0; c < channels; c++) put(dq, c, r->dq[i * deep + c] * (float)t->scale, half);
    }
}

static void learn_head(const back *b, const back_room *r, int64_t which, int half) {
    const task *t = &b->forward;
    int64_t batch = which / t->heads, h = which % t->heads, deep = up(t->channels), i = 0;
    pack(&t->k, r->keys, r->key_rows, t->keys, t->channels, batch, h, half);
    pack(&t->v, r->values, 0, t->keys, t->channels, batch, h, half);
    for (int64_t k = 0; k < t->keys * deep; k++) r->dk[k] = r->dv[k] = 0;
    for (; i + QUERIES <= t->queries; i += QUERIES) {
        expect(&t->q, t->queries, batch, h, i + QUERIES, half), expect(&t->out, t->queries, batch, h, i + QUERIES, half);
        expect(&b->given, t->queries, batch, h, i + QUERIES, half);
        expect(&t->k, t->keys, batch, h + 1, i, half), expect(&t->v, t->keys, batch, h + 1, i, half);
        learn(b, r, batch, h, i, QUERIES, half);
    }
    for (; i + 4 <= t->queries; i += 4) learn(b, r, batch, h, i, 4, half);
    for (; i + 2 <= t->queries; i += 2) learn(b, r, batch, h, i, 2, half);
    for (; i < t->queries; i++) learn(b, r, batch, h, i, 1, half);
    for (int64_t k = 0; k < t->keys; k++) {
        char *dk = (char *)row(&b->dk, batch, h, k, half), *dv = (char *)row(&b->dv, batch, h, k, half);
        for (int64_t c = 0; c < t->channels; c++) put(dk, c, r->dk[k * deep + c], half), put(dv, c, r->dv[k * deep + c], half);
    }
}

static void piece_back(const void *of, int64_t i, float *at) {
    const back *b = of;
    const task *t = &b->forward;
    int64_t columns = up(t->channels * up(t->keys)), rows = t->keys * up(t->channels), few = QUERIES * up(t->channels);
    back_room r = {.keys = at, .values = at + columns};
    r.key_rows = r.values + columns;
    r.dk = r.key_rows + rows, r.dv = r.dk + rows;
    r.p = r.dv + rows, r.ds = r.p + up(QUERIES * ROW);
    r.q = r.ds + up(QUERIES * ROW), r.g = r.q + few;
    r.q_rows = r.g + few, r.g_rows = r.q_rows + few, r.dq = r.g_rows + few;
    if (t->half) learn_head(b, &r, i, 1);
    else learn_head(b, &r, i, 0);
}

/* 0, or 1 where memory was short.  forward.out, .logsum and .bias are what `attention` made and was given. */
int64_t attention_backward(const back *b) {
    const task *t = &b->forward;
    int64_t columns = up(t->channels * up(t->keys)), rows = t->keys * up(t->channels), few = QUERIES * up(t->channels);
    int64_t floats = 2 * columns + 3 * rows + 2 * up(QUERIES * ROW) + 5 * few;
    return share_out(piece_back, b, t->batch * t->heads, t->threads, floats);
}
