"""Sweeps: how long tours get when a model sees stretched coordinates (pens, Section 4.2).

A sweep runs on held-out instances, so that what it finds may be used on the test sets.  All factors see the same
instances and the same draw of random embeddings: what differs between them is the factor alone.
"""

import logging
import time

import numpy as np

from neuroute.analysis.rescaling import check_factors, fit_parabola
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import decode
from neuroute.evaluation.labelled import in_faster_precision
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, describe_test
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Decoding, RescalingEvaluation

log = logging.getLogger(__name__)


def measure(loaded: LoadedModel, evaluation: RescalingEvaluation) -> tuple[Rows, Arrays]:
    """Return records (length and time_s of each factor, rescale_factor of each sweep) and arrays.

    Of all sweeps, smallest size first: sizes (k,) int64, best (k,) float64, interior (k,) bool.  Of each:
    "<dataset id>|factors" and "|lengths" (f,), means on the original scale, "|parabola" (3,): a, b, c,
    "|fitted" (2,): the smallest and the largest factor that it is fitted to.
    Raises NeurouteError if a sweep's factors can have no minimum.
    """
    sweeps = sorted(evaluation.sweeps, key=lambda s: s.dataset.n)
    for sweep in sweeps:  # before hours of decoding, not after
        check_factors(sweep.factors, f"{evaluation.id}: {sweep.dataset.id}")
    _decode(loaded, dataset_coordinates(sweeps[0].dataset)[:2], Decoding())  # warm up
    rows, arrays, fits = Rows(), Arrays(), []
    for sweep in sweeps:
        dataset, about = sweep.dataset, describe_test(sweep.dataset)
        coords = dataset_coordinates(dataset)
        model = in_faster_precision(loaded, "tsp", coords, dataset.n, Decoding())
        lengths, total = [], 0.0
        for count, factor in enumerate(sweep.factors, 1):
            decoding = Decoding(rescale=factor)
            began = time.perf_counter()
            tours = _decode(model, coords, decoding)
            seconds = time.perf_counter() - began
            total += seconds
            lengths.append(float(tour_length(coords, tours).mean()))
            rows += model.rows(evaluation.name, about, decoding, {"length": lengths[-1], "time_s": seconds}, seconds)
            log.info(
                "%s: %s, factor %g (%d of %d): mean length %.4f, %.1f s",
                evaluation.id, dataset.id, factor, count, len(sweep.factors), lengths[-1], seconds,
            )  # fmt: skip
        fit = fit_parabola(sweep.factors, lengths, f"{evaluation.id}: {dataset.id}")
        if fit.interior:
            log.info("%s: %s: best factor %.3f", evaluation.id, dataset.id, fit.best)
        else:
            at_an_end = fit.best in (min(sweep.factors), max(sweep.factors))
            log.warning(
                "%s: %s: the parabola has no minimum between its factors %g and %g, so the best swept factor, %g, is "
                "used; %s this size's `factors` in the scale file", evaluation.id, dataset.id, fit.low, fit.high,
                fit.best, "widen" if at_an_end else "add some near it to",
            )  # fmt: skip
        fits.append(fit)
        rows += model.rows(evaluation.name, about, Decoding(rescale="best"), {"rescale_factor": fit.best}, total)
        arrays[f"{dataset.id}|factors"] = np.array(sweep.factors, np.float64)
        arrays[f"{dataset.id}|lengths"] = np.array(lengths)
        arrays[f"{dataset.id}|parabola"] = np.array([fit.a, fit.b, fit.c])
        arrays[f"{dataset.id}|fitted"] = np.array([fit.low, fit.high])
    arrays["sizes"] = np.array([s.dataset.n for s in sweeps], np.int64)
    arrays["best"] = np.array([fit.best for fit in fits], np.float64)
    arrays["interior"] = np.array([fit.interior for fit in fits], bool)
    return rows, arrays


def _decode(loaded: LoadedModel, coords: np.ndarray, decoding: Decoding) -> np.ndarray:
    """Return tours (count, n) of coords (count, n, 2)."""
    return decode("tsp", loaded.net, coords, decoding, loaded.memory_gb, loaded.run.training.precision).numpy()
