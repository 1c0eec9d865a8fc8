"""Operators of networks and decodings that are compiled from C on a CPU, each with a plain torch twin."""
