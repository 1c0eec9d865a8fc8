/* Linear layers, and two of them with a ReLU or softmaxes between, for rows of floats on a CPU.  linear.py calls this.

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

/* n rows through one panel, of which `there` outputs are there. */
INLINE void tile(float *out, const float *stream, int64_t out_row, const float *x, int64_t inputs, const float *panel,
                 int64_t there, int relu, const int n) {
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
            store(out + at, y);
        } else
            for (int k = 0; k < LANES && j * LANES + k < there; k++) out[at + k] = stream ? stream[at + k] + y[k] : y[k];
    }
}

static void through(const layer *l, const float *packed, float *out, const float *stream, int64_t out_row, const float *x,
                    int64_t rows, int relu) {
    for (int64_t first = 0; first < l->outputs; first += WIDE, packed += WIDE * (l->inputs + 1)) {
        int64_t there = l->outputs - first < WIDE ? l->outputs - first : WIDE, i = 0;
#define TILE(n) \
    tile(out + i * out_row + first, stream ? stream + i * out_row + first : 0, out_row, x + i * l->inputs, l->inputs, packed, there, relu, n)
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
            float *room = own + weights + hidden * omp_get_thread_num();
            through(a, own, room, 0, a->outputs, x, rows, !t->group);
            if (t->group) softmaxes(room, rows * a->outputs, t->group);
            through(b, own + of_first, out, stream, wide, room, rows, 0);
        } else
            through(a, own, out, stream, wide, x, rows, 0);
    }
    return 0;
}
