/* A move of solutions of routing problems that are being built, on a CPU: what RouteRollout.go of decoding/cvrp.py and
   decoding/vrp.py say, in one pass and to the same bits.  moves.py calls this. */

#include <math.h>
#include <stdint.h>

typedef struct {
    const int64_t *demand, *capacity;                           /* (batch, nodes) and (batch,) */
    const double *distances, *service, *opens, *closes, *limit; /* the last two with the slack; none of the CVRP */
    int64_t batch, nodes, tours;
    int64_t open, backhaul, limited, windows;
} problem;

typedef struct {
    int64_t *current, *served, *load, *deliveries; /* (batch, tours) */
    double *time, *length;                         /* the last three are none of the CVRP */
} state;

typedef struct {
    const int64_t *stops;    /* (batch, tours): where to */
    int32_t *order, *via;    /* (batch, tours, nodes) */
    float *visited, *mask;   /* (batch, tours, mask_row) */
    float *context;          /* (batch, tours), or (batch, tours, 4) */
    int64_t mask_row;
    state before, after;     /* without after.current: that is stops */
} change;

typedef struct {
    problem shared;
    change made;
} task;

#define CLOSE(bad) \
    for (int64_t k = 0; k < nodes; k++) mask[k] = (bad) ? -INFINITY : mask[k]

/* 0, or 2 for a stop that is not there, or one more than there are customers. */
int64_t move(const task *t) {
    const problem *p = &t->shared;
    const change *m = &t->made;
    int64_t nodes = p->nodes;
    for (int64_t i = 0; i < p->batch * p->tours; i++) {
        int64_t b = i / p->tours, stop = m->stops[i], now = m->before.current[i], served = m->before.served[i];
        if (stop < 0 || stop >= nodes || served >= nodes) return 2;
        const int64_t *demand = p->demand + b * nodes;
        int64_t capacity = p->capacity[b], full = capacity, taken = demand[stop];
        double time = 0, length = 0;
        const double *service = p->service + b * nodes, *opens = p->opens + b * nodes, *closes = p->closes + b * nodes;
        if (p->distances) {
            double way = p->distances[(b * nodes + now) * nodes + stop];
            int64_t deliveries = m->before.deliveries[i] - (taken > 0);
            length = stop > 0 ? m->before.length[i] + way : 0;
            if (p->windows && stop > 0) {
                double begins = m->before.time[i] + way;
                time = (begins > opens[stop] ? begins : opens[stop]) + service[stop];
            }
            if (p->backhaul && deliveries <= 0) full = 0;
            m->after.deliveries[i] = deliveries, m->after.length[i] = length, m->after.time[i] = time;
        }
        m->order[i * nodes + served] = stop, m->via[i * nodes + served] = now == 0;
        float *visited = m->visited + i * m->mask_row, *restrict mask = m->mask + i * m->mask_row;
        visited[stop] = -INFINITY;
        served += stop > 0;
        int64_t load = stop > 0 ? m->before.load[i] - taken : full;
        m->after.served[i] = served, m->after.load[i] = load;

        for (int64_t k = 0; k < nodes; k++) mask[k] = visited[k];
        CLOSE(demand[k] > load);
        if (p->backhaul) CLOSE(load - demand[k] > capacity);
        if (p->limited || p->windows) {
            const double *way = p->distances + (b * nodes + stop) * nodes, *all = p->distances + b * nodes * nodes;
#define HOME (p->open ? 0 : all[k * nodes])
            if (p->limited) CLOSE(length + way[k] + HOME > p->limit[b]);
            if (p->windows) {
#define BEGINS (time + way[k] > opens[k] ? time + way[k] : opens[k])
                CLOSE(BEGINS > closes[k]);
                if (!p->open) CLOSE(BEGINS + service[k] + HOME > closes[0]);
            }
        }
        mask[0] = stop == 0 && served < nodes - 1 ? -INFINITY : 0;
        float share = (float)load / (float)capacity;
        if (p->distances) {
            float *known = m->context + 4 * i;
            known[0] = share, known[1] = time, known[2] = length, known[3] = p->open;
        } else
            m->context[i] = share;
    }
    return 0;
}
