"""Laws, intervals and statistics of what was measured."""

RESAMPLES = 1000  # of a bootstrap over test instances
