"""LKH's own `main`, of the module that LKHpy is: `python lkhpy_main.py FILE_OF_THE_MODULE PARAMETER_FILE`.

It imports no more than it needs: most labels are of instances that take LKH less time than Python takes to start.
"""

import ctypes
import os
import signal
import sys

INFINITY = 2**63 - 1  # LKH's PLUS_INFINITY
MATRIX_NODES = 20_000  # as many as LKH's program keeps distances of
PR_SET_PDEATHSIG = 1


def run(file: str, parameters: str) -> None:
    """Do what `main` of LKH-3.0.12 does with a parameter file of one run; LKH ends the process on bad input."""
    lkh = ctypes.CDLL(file)
    number, whole = ctypes.c_int, ctypes.c_longlong
    lkh.GetTime.restype = ctypes.c_double
    lkh.FindTour.restype = whole
    lkh.WriteTour.argtypes = [ctypes.c_char_p, ctypes.c_void_p, whole]
    name = ctypes.create_string_buffer(os.fsencode(parameters))
    ctypes.c_void_p.in_dll(lkh, "ParameterFileName").value = ctypes.addressof(name)
    lkh.ReadParameters()
    ctypes.c_double.in_dll(lkh, "StartTime").value = lkh.GetTime()
    number.in_dll(lkh, "MaxMatrixDimension").value = MATRIX_NODES
    ctypes.c_void_p.in_dll(lkh, "MergeWithTour").value = ctypes.cast(lkh.MergeWithTourIPT, ctypes.c_void_p).value
    penalty = ctypes.c_void_p.in_dll(lkh, "Penalty")
    lkh.ReadProblem()
    if ctypes.c_double.in_dll(lkh, "DistanceLimit").value < sys.float_info.max:
        # LKHpy is built with c4v4's Penalty_CVRP, which is faster, but forgets the length of routes.
        penalty.value = ctypes.cast(lkh.Penalty_CVRP_Old, ctypes.c_void_p).value
    lkh.AllocateStructures()
    lkh.CreateCandidateSet()
    lkh.InitializeStatistics()
    norm = number.in_dll(lkh, "Norm")
    cost, best_penalty, current = (whole.in_dll(lkh, each) for each in ("BestCost", "BestPenalty", "CurrentPenalty"))
    best_penalty.value = current.value = INFINITY
    if norm.value or penalty:
        norm.value, cost.value = 9999, INFINITY
        number.in_dll(lkh, "Run").value = 1
        cost.value = lkh.FindTour()
        best_penalty.value = current.value
    else:  # the ascent has solved the problem
        cost.value = int(ctypes.c_double.in_dll(lkh, "LowerBound").value)
        best_penalty.value = current.value = 0
    lkh.RecordBetterTour()
    lkh.RecordBestTour()
    tour = ctypes.c_void_p.in_dll(lkh, "BestTour")
    lkh.WriteTour(ctypes.c_char_p.in_dll(lkh, "TourFileName"), tour, cost)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with the process that waits for it
    run(*sys.argv[1:])
