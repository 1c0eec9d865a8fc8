/* Linear layers, and two of them with a ReLU or softmaxes between, for rows of floats on a CPU: forward, and with
   gradients (`linear_backward`).  linear.py calls this.

   A layer's weights are packed, with an input's weights for WIDE outputs side by side, which takes as long as a few dozen
   rows.  A tile of ROWS x WIDE sums then stays in registers for all inputs, and biases, ReLU and the stream that a branch
   is added to cost nothing besides.  A row is computed alone, in the same order whatever else there is. */

#include <omp.h>

#include "vectors.h"

#define WIDE (2 * LANES)
#define ROWS (LANES == 16 ? 8 : 6)
#define BLOCK (16 * ROWS) /* rows of which a hidden layer stays in the second-level cache */

typedef struct {
    const float *weight, *bias; /* (outputs, inputs) and (outputs,), or no bias */
    int64_t inputs, outputs;
    const float *factor;        /* of both, or nothing */
} layer;

typedef struct {
    const float *x, *stream; /* (rows, inputs); what is added to the outputs, like out, or nothing */
    float *out;              /* (rows, outputs) */
    float *hidden;           /* what stands between the two layers, where it is kept: (rows, outputs of the first) */
    int64_t rows;
    layer first, second; /* second without a weight: there is none */
    int64_t group;       /* between the two: softmaxes of so many outputs, a multiple of LANES, of base 2; 0: a ReLU */
    int64_t threads;
} task;

INLINE int64_t panels(int64_t outputs) { return (outputs + WIDE - 1) / WIDE; }
INLINE int64_t floats(const layer *l) { return panels(l->outputs) * WIDE * (l->inputs + 1); }

/* Panels of (1 + inputs, WIDE): biases, then the weights of each input; 0 where there is no output. */
static void pack(float *to, const layer *l) {
    float factor = l->factor ? *l->factor : 1;
    for (int64_t first = 0; first < l->outputs; first += WIDE) {
        int64_t there = l->outputs - first < WIDE ? l->outputs - first : WIDE, c = 0;
        for (int64_t j = 0; j < WIDE; j++) to[j] = l->bias && j < there ? l->bias[first + j] * factor : 0;
        to += WIDE;
        const float *w = l->weight + first * l->inputs;
        if (there == WIDE)
            for (; c + LANES <= l->inputs; c += LANES, to += LANES * WIDE) {
                vec part[LANES];
                for (int half = 0; half < 2; half++) {
                    UNROLL for (int i = 0; i < LANES; i++)
                        part[i] = load(w + (half * LANES + i) * l->inputs + c) * fill(factor);
                    transpose(part);
                    UNROLL for (int i = 0; i < LANES; i++) store(to + i * WIDE + half * LANES, part[i]);
                }
            }
        for (; c < l->inputs; c++, to += WIDE)
            for (int64_t j = 0; j < WIDE; j++) to[j] = j < there ? w[j * l->inputs + c] * factor : 0;
    }
}

/* n rows through one panel, of which `there` outputs are there: 0 where a gate, if there is one, is not above 0. */
INLINE void tile(float *out, const float *stream, const float *gate, int64_t out_row, const float *x, int64_t inputs,
                 const float *panel, int64_t there, int relu, const int n) {
    vec sum[8][2];
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int j = 0; j < 2; j++) sum[i][j] = load(panel + j * LANES);
    for (int64_t c = 0; c < inputs; c++) {
        panel += WIDE;
        vec w[2] = {load(panel), load(panel + LANES)};
        UNROLL for (int i = 0; i < n; i++) {
            vec a = fill(x[i * inputs + c]);
            UNROLL for (int j = 0; j < 2; j++) sum[i][j] += a * w[j];
        }
    }
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int j = 0; j < 2; j++) {
        vec y = sum[i][j];
        int64_t at = i * out_row + j * LANES;
        if (relu) y = larger(y, (vec){});
        if (there == WIDE) {
            if (stream) y += load(stream + at);
            if (gate) y = pick(load(gate + at) > (vec){}, y, (vec){});
            store(out + at, y);
        } else
            for (int k = 0; k < LANES && j * LANES + k < there; k++) {
                float one = stream ? stream[at + k] + y[k] : y[k];
                out[at + k] = gate && !(gate[at + k] > 0) ? 0 : one;
            }
    }
}

static void through(const layer *l, const float *packed, float *out, const float *stream, const float *gate,
                    int64_t out_row, const float *x, int64_t rows, int relu) {
    for (int64_t first = 0; first < l->outputs; first += WIDE, packed += WIDE * (l->inputs + 1)) {
        int64_t there = l->outputs - first < WIDE ? l->outputs - first : WIDE, i = 0;
#define TILE(n) \
    tile(out + i * out_row + first, stream ? stream + i * out_row + first : 0, gate ? gate + i * out_row + first : 0, out_row, \
         x + i * l->inputs, l->inputs, packed, there, relu, n)
        for (; i + ROWS <= rows; i += ROWS) TILE(ROWS);
        for (; i + 2 <= rows; i += 2) TILE(2);
        for (; i < rows; i++) TILE(1);
#undef TILE
    }
}

/* Of each `group` numbers, of base 2. */
static void softmaxes(float *x, int64_t count, int64_t group) {
    for (; count > 0; count -= group, x += group) {
        vec most = load(x), total = (vec){};
        for (int64_t k = LANES; k < group; k += LANES) most = larger(load(x + k), most);
        UNROLL for (int s = LANES / 2; s; s /= 2) most = larger(__builtin_shuffle(most, lanes() ^ s), most);
        for (int64_t k = 0; k < group; k += LANES) {
            vec p = exp2_of(load(x + k) - most);
            store(x + k, p);
            total += p;
        }
        vec share = fill(1) / summed(total);
        for (int64_t k = 0; k < group; k += LANES) store(x + k, load(x + k) * share);
    }
}

/* 0, or 1 where memory was short. */
int64_t linear(const task *t) {
    const layer *a = &t->first, *b = &t->second;
    int64_t hidden = b->weight ? up(BLOCK * a->outputs) : 0, of_first = up(floats(a));
    int64_t weights = of_first + (b->weight ? up(floats(b)) : 0);
    float *own = own_room(weights + hidden * t->threads);
    if (!own) return 1;
    pack(own, a);
    if (b->weight) pack(own + of_first, b);
#pragma omp parallel for schedule(static) num_threads(t->threads) if (t->threads > 1)
    for (int64_t first = 0; first < t->rows; first += BLOCK) {
        int64_t rows = t->rows - first < BLOCK ? t->rows - first : BLOCK, wide = b->weight ? b->outputs : a->outputs;
        const float *x = t->x + first * a->inputs, *stream = t->stream ? t->stream + first * wide : 0;
        float *out = t->out + first * wide;
        if (b->weight) {
            float *room = t->hidden ? t->hidden + first * a->outputs : own + weights + hidden * omp_get_thread_num();
            through(a, own, room, 0, 0, a->outputs, x, rows, !t->group);
            if (t->group) softmaxes(room, rows * a->outputs, t->group);
            through(b, own + of_first, out, stream, 0, wide, room, rows, 0);
        } else
            through(a, own, out, stream, 0, wide, x, rows, 0);
    }
    return 0;
}

/* -- The way back -- */

typedef struct {
    const float *given, *x;         /* (rows, outputs): the gradient of what came out; (rows, inputs): what went in */
    const float *weight;            /* (outputs, inputs) */
    const float *stream;            /* what is added to dx, or nothing */
    float *dx, *d_weight, *restrict d_bias; /* like x, weight and bias; the last two are added to, and may be nothing */
    int64_t inputs, outputs;
} step;

typedef struct {
    int64_t rows, threads;
    step first, second; /* second without a weight: there is none; else its gradient is dx of the first, where x is above 0 */
} steps;

/* The panels of a layer whose weights are the transposed ones. */
static void pack_back(float *to, const step *s) {
    for (int64_t first = 0; first < s->inputs; first += WIDE) {
        int64_t there = s->inputs - first < WIDE ? s->inputs - first : WIDE;
        for (int64_t j = 0; j < WIDE; j++) to[j] = 0;
        to += WIDE;
        for (int64_t o = 0; o < s->outputs; o++, to += WIDE) {
            const float *w = s->weight + o * s->inputs + first;
            for (int64_t j = 0; j < WIDE; j++) to[j] = j < there ? w[j] : 0;
        }
    }
}

/* to (ROWS, WIDE) of rows that are `row` apart += a^T b: a (rows, ROWS), b (rows, WIDE). */
INLINE void outer(float *to, int64_t row, const float *a, const float *b, int64_t rows, int64_t high, int64_t wide) {
    vec sum[ROWS][2];
    UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int j = 0; j < 2; j++) sum[i][j] = (vec){};
    for (int64_t r = 0; r < rows; r++, a += ROWS, b += WIDE) {
        vec w[2] = {load(b), load(b + LANES)};
        UNROLL for (int i = 0; i < ROWS; i++) {
            vec x = fill(a[i]);
            UNROLL for (int j = 0; j < 2; j++) sum[i][j] += x * w[j];
        }
    }
    UNROLL for (int i = 0; i < ROWS; i++) {
        if (i >= high) break;
        UNROLL for (int j = 0; j < 2; j++) {
            float *at = to + i * row + j * LANES;
            if (wide == WIDE) store(at, load(at) + sum[i][j]);
            else
                for (int k = 0; k < LANES && j * LANES + k < wide; k++) at[k] += sum[i][j][k];
        }
    }
}

/* Rows of (rows, all), `size` of them side by side, 0 beyond `all`: from `first` on. */
INLINE void cut(float *to, const float *from, int64_t rows, int64_t all, int64_t first, const int size) {
    int64_t there = all - first < size ? all - first : size;
    from += first;
    if (there == size)
        for (int64_t r = 0; r < rows; r++, to += size, from += all) __builtin_memcpy(to, from, 4 * size);
    else
        for (int64_t r = 0; r < rows; r++, to += size, from += all)
            for (int j = 0; j < size; j++) to[j] = j < there ? from[j] : 0;
}

/* Gradients of the weights and biases of outputs from `begin` to `end`, of rows of given and x; room: 2 * BLOCK rows' . */
static void of_weights(const step *s, const float *restrict given, const float *x, int64_t rows, int64_t begin, int64_t end, float *room) {
    int64_t high = (end - begin + ROWS - 1) / ROWS * ROWS;
    float *b = room + BLOCK * high;
    for (int64_t first = 0; first < rows; first += BLOCK, given += BLOCK * s->outputs, x += BLOCK * s->inputs) {
        int64_t count = rows - first < BLOCK ? rows - first : BLOCK;
        if (s->d_bias) {
            int64_t r = 0;
            for (const float *g = given; r + 4 <= count; r += 4, g += 4 * s->outputs)
                for (int64_t o = begin; o < end; o++)
                    s->d_bias[o] += (g[o] + g[s->outputs + o]) + (g[2 * s->outputs + o] + g[3 * s->outputs + o]);
            for (; r < count; r++)
                for (int64_t o = begin; o < end; o++) s->d_bias[o] += given[r * s->outputs + o];
        }
        if (!s->d_weight) continue;
        for (int64_t o = begin; o < end; o += ROWS) cut(room + (o - begin) * count, given, count, s->outputs, o, ROWS);
        for (int64_t i = 0; i < s->inputs; i += WIDE) {
            cut(b, x, count, s->inputs, i, WIDE);
            for (int64_t o = begin; o < end; o += ROWS)
                outer(s->d_weight + o * s->inputs + i, s->inputs, room + (o - begin) * count, b, count, end - o, s->inputs - i < WIDE ? s->inputs - i : WIDE);
        }
    }
}

/* As `linear`.  Rows are taken some at a time, so that what stands between two layers stays in the cache; sums over rows
   are over blocks in their order, whatever the number of threads. */
int64_t linear_backward(const steps *t) {
    const step *a = &t->first, *b = &t->second;
    int two = b->weight != 0;
    layer la = {.inputs = a->outputs, .outputs = a->inputs}, lb = {.inputs = b->outputs, .outputs = b->inputs};
    int64_t of_first = up(floats(&la)), weights = of_first + (two ? up(floats(&lb)) : 0), chunk = BLOCK * t->threads;
    int64_t between = two ? up(chunk * a->inputs) : 0, most = a->outputs > b->outputs ? a->outputs : b->outputs;
    int64_t each = up(BLOCK * (most + ROWS + WIDE));
    float *own = own_room(weights + between + each * t->threads);
    if (!own) return 1;
    if (two || a->dx) pack_back(own, a);
    if (two && b->dx) pack_back(own + of_first, b);
    float *middle = own + weights, *rooms = middle + between;
    for (int64_t start = 0; start < t->rows; start += chunk) {
        int64_t rows = t->rows - start < chunk ? t->rows - start : chunk;
        const float *given = a->given + start * a->outputs, *x = a->x + start * a->inputs;
#pragma omp parallel num_threads(t->threads) if (t->threads > 1)
        {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < rows; i += BLOCK) {
                int64_t count = rows - i < BLOCK ? rows - i : BLOCK, at = start + i;
                const float *up_to = given + i * a->outputs;
                if (two) {
                    float *d = middle + i * a->inputs;
                    through(&la, own, d, 0, x + i * a->inputs, a->inputs, up_to, count, 0);
                    if (b->dx)
                        through(&lb, own + of_first, b->dx + at * b->inputs, b->stream ? b->stream + at * b->inputs : 0, 0,
                                b->inputs, d, count, 0);
                } else if (a->dx)
                    through(&la, own, a->dx + at * a->inputs, a->stream ? a->stream + at * a->inputs : 0, 0, a->inputs, up_to,
                            count, 0);
            }
            int64_t n = omp_get_num_threads(), me = omp_get_thread_num();
            for (int which = 0; which < 1 + two; which++) {
                const step *s = which ? b : a;
                int64_t part = ((s->outputs + n - 1) / n + ROWS - 1) / ROWS * ROWS, begin = me * part;
                int64_t end = begin + part < s->outputs ? begin + part : s->outputs;
                if (begin < end)
                    of_weights(s, which ? middle : given, which ? b->x + start * b->inputs : x, rows, begin, end, rooms + each * me);
            }
        }
    }
    return 0;
}
